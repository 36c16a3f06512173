#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#if (defined(__AVX512F__) && defined(__AVX512BW__)) || (defined(__AVX2__) && defined(__FMA__))
#include <immintrin.h>
#endif

// Symmetric linear quantization to int8: x ~ step q, step = max |x| / 127, q in [-127,127].

namespace nmt::kernels {
namespace {

/// |x| as bits, which order magnitudes as the floats do, with NaN above infinity.
inline std::uint32_t magnitude_bits(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFu;
}
/// The largest |x[i]|; not finite if any x[i] is not finite.
inline float largest_magnitude(const float* x, std::int64_t n) {
  std::uint32_t most = 0;
  for (std::int64_t i = 0; i < n; ++i) most = std::max(most, magnitude_bits(x[i]));
  return std::bit_cast<float>(most);
}

/// The quantization of values with this largest magnitude. NaN is the step of values that are not
/// all finite. The reciprocal of a smaller maximum than 1e-36 would overflow; such values become 0.
struct Step {
  explicit Step(float most)
      : size(std::isfinite(most) ? most / 127.0f : std::numeric_limits<float>::quiet_NaN()),
        inverse(std::isfinite(most) && most >= 1e-36f ? 127.0f / most : 0.0f) {}
  float size, inverse;
};

/// The integer nearest to the exact product x scale, ties to even: the same on every instruction
/// set. |x scale| is at most about 127. Adding 1.5 * 2^23, or 1.5 * 2^52 in double, rounds to an
/// integer and vectorizes on every target.
inline std::int32_t nearest(float x, float scale) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return std::bit_cast<std::int32_t>(std::fma(x, scale, 12582912.0f)) - 0x4B400000;
#else
  // A product of two floats is exact in double.
  const double shifted = static_cast<double>(x) * static_cast<double>(scale) + 6755399441055744.0;
  return static_cast<std::int32_t>(std::bit_cast<std::int64_t>(shifted) - 0x4338000000000000);
#endif
}

/// out[i] = nearest(x[i], scale) for i < n; returns their sum. g++ 12 makes several times the
/// instructions of the portable loop that are needed.
inline std::int32_t quantize_values(const float* x, std::int64_t n, float scale, std::int8_t* out) {
  std::int64_t i = 0;
  std::int32_t sum = 0;
#if defined(__AVX512F__) && defined(__AVX512BW__)
  const __m512 factor = _mm512_set1_ps(scale), shift = _mm512_set1_ps(12582912.0f);
  const __m512i offset = _mm512_set1_epi32(0x4B400000);
  const auto rounded = [&](__m512 value) __attribute__((always_inline)) {
    return _mm512_sub_epi32(_mm512_castps_si512(_mm512_fmadd_ps(value, factor, shift)), offset);
  };
  // Packing works on 128 bits: four consecutive values of each of four vectors.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i flip = _mm512_set1_epi8(-128);
  __m512i sums = _mm512_setzero_si512();  // of values + 128
  for (; i < n; i += 64) {
    const std::uint64_t used = n - i >= 64 ? ~0ull : (1ull << (n - i)) - 1;
    const auto part = [&](int v) __attribute__((always_inline)) {
      return rounded(_mm512_maskz_loadu_ps(static_cast<__mmask16>(used >> 16 * v), x + i + 16 * v));
    };
    const __m512i low = _mm512_packs_epi32(part(0), part(1)),
                  high = _mm512_packs_epi32(part(2), part(3)),
                  bytes =
                      _mm512_maskz_permutexvar_epi32(0xFFFF, order, _mm512_packs_epi16(low, high));
    _mm512_mask_storeu_epi8(out + i, used, bytes);
    sums = _mm512_add_epi64(sums,
                            _mm512_sad_epu8(_mm512_xor_si512(bytes, flip), _mm512_setzero_si512()));
  }
  alignas(64) std::int64_t parts[8];
  _mm512_store_si512(parts, sums);
  for (const std::int64_t part : parts) sum += static_cast<std::int32_t>(part);
  sum -= static_cast<std::int32_t>(128 * i);
#elif defined(__AVX2__) && defined(__FMA__)
  const __m256 factor = _mm256_set1_ps(scale), shift = _mm256_set1_ps(12582912.0f);
  const __m256i offset = _mm256_set1_epi32(0x4B400000);
  const auto rounded = [&](const float* from) __attribute__((always_inline)) {
    return _mm256_sub_epi32(
        _mm256_castps_si256(_mm256_fmadd_ps(_mm256_loadu_ps(from), factor, shift)), offset);
  };
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7), flip = _mm256_set1_epi8(-128);
  __m256i sums = _mm256_setzero_si256();  // of values + 128
  for (; i + 32 <= n; i += 32) {
    const __m256i low = _mm256_packs_epi32(rounded(x + i), rounded(x + i + 8)),
                  high = _mm256_packs_epi32(rounded(x + i + 16), rounded(x + i + 24)),
                  bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), bytes);
    sums = _mm256_add_epi64(sums,
                            _mm256_sad_epu8(_mm256_xor_si256(bytes, flip), _mm256_setzero_si256()));
  }
  alignas(32) std::int64_t parts[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(parts), sums);
  for (const std::int64_t part : parts) sum += static_cast<std::int32_t>(part);
  sum -= static_cast<std::int32_t>(128 * i);
#endif
  for (; i < n; ++i) {
    const std::int32_t q = nearest(x[i], scale);
    out[i] = static_cast<std::int8_t>(q);
    sum += q;
  }
  return sum;
}

}  // namespace
}  // namespace nmt::kernels
