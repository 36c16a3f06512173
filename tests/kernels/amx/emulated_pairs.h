#pragma once

// The two instructions of AVX-512 BF16 in plain AVX-512, after the operation sections of Intel's
// manual: rounding to nearest even, and denormal inputs and results are 0, whatever MXCSR says.
// Included before kernels/products/bf16/pairs.h, which then uses them. Everything here has internal
// linkage, as there.

#include <cstdint>

#include <immintrin.h>

#define NMT_PAIR_FUNCTION

namespace nmt::kernels {
namespace {

// Full masks as in load() of kernels/vector.h.

/// 16 floats in bfloat16, in the lower halves of the lanes.
[[gnu::always_inline]] inline __m512i rounded_halves(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x), sign = _mm512_set1_epi32(INT32_MIN),
                infinity = _mm512_set1_epi32(0x7F800000),
                magnitude = _mm512_maskz_andnot_epi32(0xFFFF, sign, bits),
                last = _mm512_and_si512(_mm512_maskz_srli_epi32(0xFFFF, bits, 16),
                                        _mm512_set1_epi32(1));
  const __mmask16 denormal = _mm512_cmplt_epu32_mask(magnitude, _mm512_set1_epi32(0x00800000)),
                  nan = _mm512_cmpgt_epu32_mask(magnitude, infinity);
  __m512i sum = _mm512_add_epi32(bits, _mm512_add_epi32(last, _mm512_set1_epi32(0x7FFF)));
  sum = _mm512_mask_and_epi32(sum, denormal, bits, sign);
  sum = _mm512_mask_or_epi32(sum, nan, bits, _mm512_set1_epi32(0x00400000));
  return _mm512_maskz_srli_epi32(0xFFFF, sum, 16);
}

/// VCVTNE2PS2BF16.
[[gnu::always_inline]] inline __m512i round_pairs(__m512 first, __m512 second) {
  alignas(64) static constexpr std::uint16_t lower[32] = {
      0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
      32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62};
  return _mm512_maskz_permutex2var_epi16(~0u, rounded_halves(first), _mm512_load_si512(lower),
                                         rounded_halves(second));
}

/// VDPBF16PS: two fused multiply-adds, of the upper halves first.
[[gnu::always_inline]] inline __m512 add_products(__m512 sum, __m512 left, __m512 right) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000u));
  const auto odd = [&](__m512 x) __attribute__((always_inline)) {
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), upper));
  };
  const auto even = [](__m512 x) __attribute__((always_inline)) {
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xFFFF, _mm512_castps_si512(x), 16));
  };
  const __m512 a1 = odd(left), b1 = odd(right), a0 = even(left), b0 = even(right);
  const unsigned before = _mm_getcsr();
  _mm_setcsr(0x1F80u | 0x8040u);  // no exceptions, to nearest; denormals are 0
  // Volatile assembly keeps its place between the two settings.
  asm volatile("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a1), "v"(b1));
  asm volatile("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a0), "v"(b0));
  _mm_setcsr(before);
  return sum;
}

}  // namespace
}  // namespace nmt::kernels
