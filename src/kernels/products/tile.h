#pragma once

#include <cstdint>

#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>
#endif

// The innermost tile of every float GEMM: `rows` x (`panels` * panel_width) outputs in registers
// over a stretch of k. Everything here has internal linkage, because the including file is compiled
// for several instruction sets.

namespace nmt::kernels {
namespace {

#if defined(__AVX512F__)
using Vector = __m512;
constexpr int lanes = 16;
constexpr int tile_rows = 14;  // 28 accumulators, 2 of B, 1 of A: 31 of 32 registers
[[gnu::always_inline]] inline Vector load(const float* p) {
  return _mm512_loadu_ps(p);
}
[[gnu::always_inline]] inline Vector load(const std::uint16_t* p) {
  // The full mask avoids a false uninitialized-value warning of g++ 12 for the unmasked intrinsics.
  const __m512i wide =
      _mm512_maskz_cvtepu16_epi32(0xFFFF, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xFFFF, wide, 16));
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
[[gnu::always_inline]] inline Vector load(const std::uint16_t* p) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
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
[[gnu::always_inline]] inline Vector load(const std::uint16_t* p) {
  using Bits = std::uint32_t __attribute__((vector_size(16)));
  return reinterpret_cast<Vector>(Bits{p[0], p[1], p[2], p[3]} << 16);
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
/// Largest stretch of k for which tile_rows rows of A fit in a 32 KB L1 cache beside the stream of
/// B.
constexpr int stretch = 256;
/// Row stride of a copied A. Not a power of two, because such rows would share cache sets.
constexpr int copied_stride = stretch + lanes;

/// Arguments of a tile. B is float32, or bfloat16, which is widened when loaded.
template <class B>
struct TileJob {
  std::int64_t depth;  ///< steps of k
  const float* a;      ///< [rows][copied_stride], or [depth][tile_rows] along k
  const B* b;          ///< panel p starts at b + p * panel_stride, its rows are b_step apart
  std::int64_t panel_stride, b_step;
  bool accumulate;
  float* c;
  std::int64_t ldc;
  const float* next;  ///< start of the next tile of C, prefetched
  /// Lines of A to prefetch for the next copy, ahead_step floats apart along k.
  const float* ahead[2];
  std::int64_t ahead_step;
};

/// C[rows, panels*panel_width] (+)= A B over `depth` steps of k. Every output is one FMA chain, k
/// ascending.
template <int rows, int panels, bool along_k, class B>
void tile(const TileJob<B>& job) {
  const std::int64_t depth = job.depth, panel_stride = job.panel_stride, b_step = job.b_step,
                     ldc = job.ldc;
  const std::int64_t ahead_step = job.ahead_step;
  const float *a = job.a, *ahead0 = job.ahead[0], *ahead1 = job.ahead[1];
  const B* b = job.b;
  float* const c = job.c;
  Vector sum[rows][2 * panels];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < 2 * panels; ++v)
      sum[r][v] = job.accumulate ? load(c + r * ldc + v * lanes) : broadcast(0.0f);
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < 2 * panels; v += 16 / lanes)
      __builtin_prefetch(job.next + r * ldc + v * lanes, 1);
#pragma GCC unroll 1
  for (std::int64_t k = 0; k < depth; ++k, b += b_step) {
    if constexpr (2 * rows > tile_rows) {
      __builtin_prefetch(ahead0);
      __builtin_prefetch(ahead1);
      ahead0 += ahead_step;
      ahead1 += ahead_step;
    }
    Vector right[2 * panels];
#pragma GCC unroll 8
    for (int v = 0; v < 2 * panels; ++v)
      right[v] = load(b + (v / 2) * panel_stride + (v % 2) * lanes);
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
