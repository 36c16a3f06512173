#pragma once

#include "core/host_device.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace nmt {

/// Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011): four
/// random words from a counter and a key. It is stateless, so CPU and GPU draw the same dropout
/// mask in any order.
NMT_HOST_DEVICE std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter,
                                                    std::uint64_t stream = 0) {
  std::uint32_t c0 = static_cast<std::uint32_t>(counter),
                c1 = static_cast<std::uint32_t>(counter >> 32);
  std::uint32_t c2 = static_cast<std::uint32_t>(stream),
                c3 = static_cast<std::uint32_t>(stream >> 32);
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0, p1 = std::uint64_t{0xCD9E8D57u} * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(p1);
    c3 = static_cast<std::uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

/// A sequential generator over Philox. Its state is seed, stream and position. Satisfies
/// UniformRandomBitGenerator; below() and uniform() give the same values on every platform.
class Rng {
 public:
  using result_type = std::uint32_t;
  explicit Rng(std::uint64_t seed = 1234, std::uint64_t stream = 0, std::uint64_t position = 0)
      : seed_(seed), stream_(stream), position_(position) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return 0xFFFFFFFFu; }

  result_type operator()() {
    const std::uint64_t at = position_++;
    return philox(seed_, at >> 2, stream_)[at & 3];
  }
  std::uint64_t next64() {
    const std::uint64_t high = (*this)();
    return high << 32 | (*this)();
  }
  /// Uniform in [0, n), n > 0; no modulo bias (Lemire's rejection).
  std::uint64_t below(std::uint64_t n) {
    const std::uint64_t limit = -n % n;
    for (;;) {
      const auto product = static_cast<Wide>(next64()) * n;
      if (static_cast<std::uint64_t>(product) >= limit)
        return static_cast<std::uint64_t>(product >> 64);
    }
  }
  /// Uniform in [0, 1), 24 bits.
  float uniform() { return static_cast<float>((*this)() >> 8) * 0x1p-24f; }
  /// Standard normal (Box-Muller).
  float normal();

  std::uint64_t seed() const { return seed_; }
  std::uint64_t stream() const { return stream_; }
  std::uint64_t position() const { return position_; }

 private:
  __extension__ typedef unsigned __int128 Wide;
  std::uint64_t seed_, stream_, position_;
};

/// Fisher-Yates shuffle (Durstenfeld, "Algorithm 235: Random permutation", CACM 1964).
template <class T>
void shuffle(std::vector<T>& values, Rng& rng) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[rng.below(i)]);
}

}  // namespace nmt
