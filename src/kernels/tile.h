#pragma once

#include <cstdint>

#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>
#endif

// The innermost tile of every matrix product: `rows` x (`panels` * panel_width) outputs in registers over a stretch of
// k. Everything here is local to the file that includes it: the same code is compiled for several instruction sets.

namespace nmt::kernels {
namespace {

#if defined(__AVX512F__)
using Vector = __m512;
constexpr int lanes = 16;
constexpr int tile_rows = 14;  // 28 accumulators, 2 of B, 1 of A: 31 of 32 registers
[[gnu::always_inline]] inline Vector load(const float* p) {
  return _mm512_loadu_ps(p);
}
[[gnu::always_inline]] inline void store(float* p, Vector v) {
  _mm512_storeu_ps(p, v);
}
[[gnu::always_inline]] inline Vector broadcast(float x) {
  return _mm512_set1_ps(x);
}
[[gnu::always_inline]] inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return _mm512_fmadd_ps(a, b, c);
}
#elif defined(__AVX2__) && defined(__FMA__)
using Vector = __m256;
constexpr int lanes = 8;
constexpr int tile_rows = 6;  // 12 accumulators, 2 of B, 1 of A: 15 of 16 registers
[[gnu::always_inline]] inline Vector load(const float* p) {
  return _mm256_loadu_ps(p);
}
[[gnu::always_inline]] inline void store(float* p, Vector v) {
  _mm256_storeu_ps(p, v);
}
[[gnu::always_inline]] inline Vector broadcast(float x) {
  return _mm256_set1_ps(x);
}
[[gnu::always_inline]] inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return _mm256_fmadd_ps(a, b, c);
}
#else
using Vector = float __attribute__((vector_size(16)));
constexpr int lanes = 4;
constexpr int tile_rows = 4;
[[gnu::always_inline]] inline Vector load(const float* p) {
  Vector v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
[[gnu::always_inline]] inline void store(float* p, Vector v) {
  __builtin_memcpy(p, &v, sizeof v);
}
[[gnu::always_inline]] inline Vector broadcast(float x) {
  return Vector{x, x, x, x};
}
[[gnu::always_inline]] inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return a * b + c;
}
#endif

constexpr int panel_width = 2 * lanes;
/// Longest stretch of k whose rows of A (tile_rows of them) stay in a 32 KB first-level cache beside B's stream.
constexpr int stretch = 256;
/// Row distance of a copied A; no power of two, or the rows would share cache sets.
constexpr int copied_stride = stretch + lanes;

/// C[rows, panels*panel_width] (+)= A B over `depth` steps of k, one multiply-add chain an output, k ascending.
/// A lies as [rows][copied_stride], or as [depth][tile_rows] when `along_k`; panel p of B starts at b + p *
/// panel_stride.
template <int rows, int panels, bool along_k>
void tile(std::int64_t depth, const float* a, const float* b, std::int64_t panel_stride, std::int64_t b_step,
          bool accumulate, float* c,
          std::int64_t ldc, const float* next) {
  Vector sum[rows][2 * panels];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < 2 * panels; ++v) sum[r][v] = accumulate ? load(c + r * ldc + v * lanes) : broadcast(0.0f);
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < 2 * panels; v += 16 / lanes) __builtin_prefetch(next + r * ldc + v * lanes, 1);
#pragma GCC unroll 1
  for (std::int64_t k = 0; k < depth; ++k, b += b_step) {
    Vector right[2 * panels];
#pragma GCC unroll 8
    for (int v = 0; v < 2 * panels; ++v) right[v] = load(b + (v / 2) * panel_stride + (v % 2) * lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const Vector left = broadcast(along_k ? a[k * tile_rows + r] : a[k + r * copied_stride]);
#pragma GCC unroll 8
      for (int v = 0; v < 2 * panels; ++v) sum[r][v] = multiply_add(left, right[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < 2 * panels; ++v) store(c + r * ldc + v * lanes, sum[r][v]);
}

}  // namespace
}  // namespace nmt::kernels
