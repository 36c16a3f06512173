#pragma once

#include "kernels/vector.h"

#include <cstdint>
#include <cstring>

// philox() (core/rng.h) for several consecutive counters. Everything here has internal linkage,
// because the including file is compiled for several instruction sets.

namespace nmt::kernels {
namespace {

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))

#if defined(__AVX512F__)
using WideLanes = std::uint64_t __attribute__((vector_size(64)));
constexpr WideLanes lane_numbers{0, 1, 2, 3, 4, 5, 6, 7};
[[gnu::always_inline]] inline WideLanes multiply_lower_halves(WideLanes a, WideLanes b) {
  // The full mask avoids a false warning, as in vector.h.
  return reinterpret_cast<WideLanes>(
      _mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
// a[0], b[0], a[1], b[1], ...
[[gnu::always_inline]] inline void store_in_turn(WideLanes a, WideLanes b, std::uint32_t* to) {
  const WideLanes low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11),
                  high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  std::memcpy(to, &low, sizeof low);
  std::memcpy(to + 16, &high, sizeof high);
}
#else
using WideLanes = std::uint64_t __attribute__((vector_size(32)));
constexpr WideLanes lane_numbers{0, 1, 2, 3};
[[gnu::always_inline]] inline WideLanes multiply_lower_halves(WideLanes a, WideLanes b) {
  return reinterpret_cast<WideLanes>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
// a[0], b[0], a[1], b[1], ...
[[gnu::always_inline]] inline void store_in_turn(WideLanes a, WideLanes b, std::uint32_t* to) {
  const WideLanes low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                  high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  std::memcpy(to, &low, sizeof low);
  std::memcpy(to + 8, &high, sizeof high);
}
#endif

constexpr int side_by_side = 2;  // vectors of each word, which hide the latency

/// words[4 i .. 4 i + 3] = philox(key, first + i, stream) for i < counters, a multiple of 16. Each
/// word has a lane of 64 bits whose upper half is ignored, so that its products need no shuffles.
template <int counters>
void philox_words(std::uint64_t key, std::uint64_t first, std::uint64_t stream,
                  std::uint32_t* words) {
  constexpr int width = sizeof(WideLanes) / sizeof(std::uint64_t);
  constexpr std::uint64_t lower = 0xFFFFFFFFu;
  static_assert(counters % (side_by_side * width) == 0);
  for (int done = 0; done < counters; done += side_by_side * width) {
    WideLanes c0[side_by_side], c1[side_by_side], c2[side_by_side], c3[side_by_side];
#pragma GCC unroll 4
    for (int v = 0; v < side_by_side; ++v) {
      c0[v] = lane_numbers + (first + static_cast<std::uint64_t>(done + v * width));
      c1[v] = c0[v] >> 32;
      c2[v] = WideLanes{} + stream;
      c3[v] = WideLanes{} + (stream >> 32);
    }
    std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
#pragma GCC unroll 1
    for (int round = 0; round < 10; ++round) {
#pragma GCC unroll 4
      for (int v = 0; v < side_by_side; ++v) {
        const WideLanes p0 = multiply_lower_halves(c0[v], WideLanes{} + std::uint64_t{0xD2511F53u}),
                        p1 = multiply_lower_halves(c2[v], WideLanes{} + std::uint64_t{0xCD9E8D57u});
        c0[v] = (p1 >> 32) ^ c1[v] ^ k0;
        c2[v] = (p0 >> 32) ^ c3[v] ^ k1;
        c1[v] = p1;
        c3[v] = p0;
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
#pragma GCC unroll 4
    for (int v = 0; v < side_by_side; ++v)
      store_in_turn((c0[v] & lower) | c1[v] << 32, (c2[v] & lower) | c3[v] << 32,
                    words + 4 * (done + v * width));
  }
}

#else

/// words[4 i .. 4 i + 3] = philox(key, first + i, stream) for i < counters. Written over arrays,
/// because the compiler does not vectorize a loop over philox() itself.
template <int counters>
void philox_words(std::uint64_t key, std::uint64_t first, std::uint64_t stream,
                  std::uint32_t* words) {
  std::uint32_t c0[counters], c1[counters], c2[counters], c3[counters];
#pragma omp simd
  for (int i = 0; i < counters; ++i) {
    const std::uint64_t counter = first + static_cast<std::uint64_t>(i);
    c0[i] = static_cast<std::uint32_t>(counter);
    c1[i] = static_cast<std::uint32_t>(counter >> 32);
    c2[i] = static_cast<std::uint32_t>(stream);
    c3[i] = static_cast<std::uint32_t>(stream >> 32);
  }
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
#pragma GCC unroll 1
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (int i = 0; i < counters; ++i) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0[i],
                          p1 = std::uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
      c2[i] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c1[i] = static_cast<std::uint32_t>(p1);
      c3[i] = static_cast<std::uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < counters; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

#endif

}  // namespace
}  // namespace nmt::kernels
