#pragma once

#include <cstdint>

#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>
#elif defined(__SSE__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

// The vector of floats of the instruction set that a file is compiled for. Everything here has
// internal linkage, because the including file is compiled for several instruction sets.
// + - * / of vectors round each operation (-ffp-contract=off); only multiply_add() is fused, where
// the instruction set has it.

namespace nmt::kernels {
namespace {

#if defined(__AVX512F__)
using Vector = __m512;
constexpr int lanes = 16;
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
/// a < b ? a : b in each lane: b where either is NaN.
[[gnu::always_inline]] inline Vector lesser(Vector a, Vector b) {
  return _mm512_maskz_min_ps(0xFFFF, a, b);
}
#elif defined(__AVX2__) && defined(__FMA__)
using Vector = __m256;
constexpr int lanes = 8;
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
[[gnu::always_inline]] inline Vector lesser(Vector a, Vector b) {
  return _mm256_min_ps(a, b);
}
#else
using Vector = float __attribute__((vector_size(16)));
constexpr int lanes = 4;
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
#if defined(__aarch64__)
  return vfmaq_f32(c, a, b);
#else
  return a * b + c;
#endif
}
[[gnu::always_inline]] inline Vector lesser(Vector a, Vector b) {
#if defined(__SSE__)
  return _mm_min_ps(a, b);
#else
  return a < b ? a : b;
#endif
}
#endif

[[gnu::always_inline]] inline float lesser(float a, float b) {
  return a < b ? a : b;
}

}  // namespace
}  // namespace nmt::kernels
