#pragma once

#include <cstdint>

namespace nmt {

/// numpy.random.default_rng(seed), bit for bit: SeedSequence (numpy/random/bit_generator.pyx) seeds
/// PCG64 (XSL-RR 128/64, O'Neill 2014), whose words Generator.choice and Generator.integers turn
/// into bounded numbers.
class NumpyGenerator {
 public:
  explicit NumpyGenerator(std::uint64_t seed);

  std::uint64_t next64();
  /// The lower half of a word first, then its upper half.
  std::uint32_t next32();
  /// From 0 to bound - 1: an element of choice(bound, size, replace=True). No word is drawn for
  /// bound 1. bound > 0.
  std::uint32_t below(std::uint32_t bound);
  /// An element of integers(2, size, dtype=bool): the bits of 32-bit words, the lowest first. Bits
  /// left over from one array are dropped in numpy before the next; one generator serves one array
  /// here.
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
