#pragma once

#include <cstdint>

namespace nmt {

/// numpy.random.default_rng(seed), bit for bit: SeedSequence (numpy/random/bit_generator.pyx) seeds
/// PCG64 (XSL-RR 128/64, O'Neill 2014); Generator.choice and Generator.integers turn its words into
/// bounded numbers.
class NumpyGenerator {
 public:
  explicit NumpyGenerator(std::uint64_t seed);

  std::uint64_t next64();
  /// First the lower half of a 64-bit word, then its upper half.
  std::uint32_t next32();
  /// Uniform in [0, bound), bound > 0: an element of choice(bound, size, replace=True). Bound 1
  /// consumes no random word.
  std::uint32_t below(std::uint32_t bound);
  /// An element of integers(2, size, dtype=bool): the bits of 32-bit words, lowest first. numpy
  /// drops the bits left over from one array before the next, so use one generator per array.
  bool bit();

 private:
  __extension__ typedef unsigned __int128 Word;
  void step();
  Word state_ = 0, increment_ = 0;
  std::uint32_t half_ = 0, bits_ = 0;
  bool has_half_ = false;
  int bits_left_ = 0;
};

}  // namespace nmt
