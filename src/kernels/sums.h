#pragma once

#include "kernels/vector.h"

#include <cstdint>

// Sums of floats in one order on every instruction set: element i is added to partial sum i mod 32,
// and the partial sums are added in halves (l and l + 16, l + 8, ...). `#pragma omp simd
// reduction(+)` would add in an order that depends on the width of the vectors.

namespace nmt::kernels {
namespace {

constexpr int partial_sums = 32;

struct LoadVector {
  [[gnu::always_inline]] Vector operator()(const float* p) const { return load(p); }
};
struct LoadFloat {
  [[gnu::always_inline]] float operator()(const float* p) const { return *p; }
};

/// The sum of the lanes of a vector, added in halves.
[[gnu::always_inline]] inline float sum_of_lanes(Vector v) {
#if defined(__AVX512F__)
  // Full masks as in load() of vector.h.
  const __m256 eight = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xFF, v, 0),
                                     _mm512_maskz_extractf32x8_ps(0xFF, v, 1));
#elif defined(__AVX2__) && defined(__FMA__)
  const __m256 eight = v;
#endif
#if defined(__AVX2__) && defined(__FMA__)
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
#elif defined(__SSE__)
  const __m128 four = v;
#endif
#if defined(__SSE__)
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
#else
  static_assert(lanes == 4);
  return (v[0] + v[2]) + (v[1] + v[3]);
#endif
}

/// The sum of term(at, i) over i in [0, n). The term reads x[i] as at(x + i): at() returns a float,
/// or a Vector of x[i], x[i + 1], ...
template <class Term>
[[gnu::always_inline]] inline float sum_terms(std::int64_t n, const Term& term) {
  constexpr int parts = partial_sums / lanes;
  Vector partial[parts];
#pragma GCC unroll 8
  for (int p = 0; p < parts; ++p) partial[p] = broadcast(0.0f);
  std::int64_t i = 0;
  for (; i + partial_sums <= n; i += partial_sums)
#pragma GCC unroll 8
    for (int p = 0; p < parts; ++p) partial[p] += term(LoadVector{}, i + p * lanes);
#pragma GCC unroll 8
  for (int p = 0; p < parts; ++p) {
    if (i + lanes <= n) {
      partial[p] += term(LoadVector{}, i);
      i += lanes;
    } else if (i < n) {
      alignas(64) float lane[lanes];
      store(lane, partial[p]);
      for (int l = 0; i < n; ++l, ++i) lane[l] += term(LoadFloat{}, i);
      partial[p] = load(lane);
    }
  }
#pragma GCC unroll 4
  for (int half = parts / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int p = 0; p < half; ++p) partial[p] += partial[p + half];
  return sum_of_lanes(partial[0]);
}

/// x[0] + ... + x[n-1].
inline float sum_of(std::int64_t n, const float* x) {
  return sum_terms(n, [x](auto at, std::int64_t i) { return at(x + i); });
}
/// x[0] y[0] + ... + x[n-1] y[n-1].
inline float dot(std::int64_t n, const float* x, const float* y) {
  return sum_terms(n, [x, y](auto at, std::int64_t i) { return at(x + i) * at(y + i); });
}

}  // namespace
}  // namespace nmt::kernels
