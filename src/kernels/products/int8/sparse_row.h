#pragma once

#include "kernels/products/int8/dot_tile.h"

#include <bit>
#include <cstdint>
#include <cstring>

// int8 products of one row of activations of which many are zero, as after ReLU: weights that would
// meet a zero are not read. For that the weights are stored by rows, [k][n rounded up to 64] of q +
// 128. The sums are those of dot_tile.h, bit for bit.

namespace nmt::kernels {
namespace {

constexpr std::int64_t sparse_columns = 64;      // rows of weights are whole cache lines
constexpr std::int64_t max_sparse_depth = 8192;  // of a row of activations

/// How many values of a row are not zero.
inline std::int64_t count_nonzeros(const std::int8_t* row, std::int64_t k) {
  std::int64_t count = 0, i = 0;
#if defined(__AVX512F__) && defined(__AVX512BW__)
  for (; i + 64 <= k; i += 64) {
    const __m512i values = _mm512_loadu_si512(row + i);
    count += std::popcount(_mm512_test_epi8_mask(values, values));
  }
#endif
  for (; i < k; ++i) count += row[i] != 0;
  return count;
}
/// Whether skipping zeros is faster for so many columns: a value costs up to 1.6 times as much as
/// in panels, and listing the values costs as much as 24 such columns (measured with weights in the
/// L2 cache, docs/benchmarks/processors.md; weights from beyond it gain more).
inline bool zeros_pay(std::int64_t count, std::int64_t k, std::int64_t columns) {
  return static_cast<double>(count * columns) <=
         static_cast<double>(k) * (0.62 * static_cast<double>(columns) - 24);
}

/// The values of a row that are not zero and their places, in groups of four. The last group is
/// completed with zeros at the place of another value.
struct Nonzeros {
  std::int64_t count, groups;
  std::int32_t places[max_sparse_depth + 16];
  alignas(4) std::int8_t values[max_sparse_depth + 16];

  Nonzeros(const std::int8_t* row, std::int64_t k) : count(0) {
    std::int64_t i = 0;
#if defined(__AVX512F__) && defined(__AVX512BW__)
    __m512i place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (; i + 16 <= k; i += 16) {
      const __m512i four_bytes = _mm512_maskz_cvtepi8_epi32(
          0xFFFF, _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + i)));
      const __mmask16 some = _mm512_test_epi32_mask(four_bytes, four_bytes);
      _mm512_storeu_si512(places + count, _mm512_maskz_compress_epi32(some, place));
      _mm_storeu_si128(
          reinterpret_cast<__m128i*>(values + count),
          _mm512_maskz_cvtepi32_epi8(0xFFFF, _mm512_maskz_compress_epi32(some, four_bytes)));
      count += std::popcount(static_cast<unsigned>(some));
      place = _mm512_add_epi32(place, _mm512_set1_epi32(16));
    }
#endif
    for (; i < k; ++i) {
      places[count] = static_cast<std::int32_t>(i);
      values[count] = row[i];
      count += row[i] != 0;
    }
    groups = (count + dot_depth - 1) / dot_depth;
    for (std::int64_t j = count; j < groups * dot_depth; ++j) {
      places[j] = places[0];
      values[j] = 0;
    }
  }
  std::int32_t four(std::int64_t group) const {
    std::int32_t bytes;
    std::memcpy(&bytes, values + group * dot_depth, dot_depth);
    return bytes;
  }
};

#if defined(__AVX512F__) && defined(__AVX512BW__)
#define NMT_VNNI_INLINE [[gnu::target("avx512vnni"), gnu::always_inline]] inline

// Sums of `blocks` times 64 columns; `i` numbers their registers. Interleaving two pairs of rows
// gives four consecutive columns of each 128 bits: register i of a block has the columns
// 16 l + 4 i to 16 l + 4 i + 3 in its part l.
template <int blocks, int... i>
NMT_VNNI_INLINE void sparse_dots_of(std::integer_sequence<int, i...>, const Nonzeros& x,
                                    const std::uint8_t* rows, std::int64_t stride,
                                    std::int32_t row_sum, std::int32_t* sums) {
  __m512i sum[4 * blocks];
  ((sum[i] = _mm512_setzero_si512()), ...);
  for (std::int64_t group = 0; group < x.groups; ++group) {
    const std::uint8_t* row[dot_depth];
    for (int r = 0; r < dot_depth; ++r) row[r] = rows + x.places[group * dot_depth + r] * stride;
    const __m512i activations = _mm512_set1_epi32(x.four(group));
    __m512i low01, high01, low23, high23;
    const auto load = [&](int block) __attribute__((always_inline, target("avx512vnni"))) {
      __m512i weights[dot_depth];
      for (int r = 0; r < dot_depth; ++r)
        weights[r] = _mm512_loadu_si512(row[r] + block * sparse_columns);
      low01 = _mm512_unpacklo_epi8(weights[0], weights[1]);
      high01 = _mm512_unpackhi_epi8(weights[0], weights[1]);
      low23 = _mm512_unpacklo_epi8(weights[2], weights[3]);
      high23 = _mm512_unpackhi_epi8(weights[2], weights[3]);
    };
    const auto four = [&](int part) __attribute__((always_inline, target("avx512vnni"))) {
      return part == 0   ? _mm512_unpacklo_epi16(low01, low23)
             : part == 1 ? _mm512_unpackhi_epi16(low01, low23)
             : part == 2 ? _mm512_unpacklo_epi16(high01, high23)
                         : _mm512_unpackhi_epi16(high01, high23);
    };
    ((i % 4 == 0 ? load(i / 4) : void(), add_dots(sum[i], four(i % 4), activations)), ...);
  }
  const __m512i offset = _mm512_set1_epi32(128 * row_sum);
  const auto store = [&](int to, __m512i four) __attribute__((always_inline)) {
    std::int32_t* const first = sums + to / 4 * sparse_columns + to % 4 * 4;
    const auto part = [&](int l, __m128i columns) __attribute__((always_inline)) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(first + 16 * l), columns);
    };
    four = _mm512_sub_epi32(four, offset);
    part(0, _mm512_maskz_extracti32x4_epi32(0xF, four, 0));
    part(1, _mm512_maskz_extracti32x4_epi32(0xF, four, 1));
    part(2, _mm512_maskz_extracti32x4_epi32(0xF, four, 2));
    part(3, _mm512_maskz_extracti32x4_epi32(0xF, four, 3));
  };
  (store(i, sum[i]), ...);
}
template <int blocks>
[[gnu::target("avx512vnni")]] void sparse_dots_vnni(const Nonzeros& x, const std::uint8_t* rows,
                                                    std::int64_t stride, std::int32_t row_sum,
                                                    std::int32_t* sums) {
  sparse_dots_of<blocks>(std::make_integer_sequence<int, 4 * blocks>(), x, rows, stride, row_sum,
                         sums);
}
#undef NMT_VNNI_INLINE
#endif

#if defined(__AVX2__)
// The products of dot_tile_plain() after the same interleaving, 64 columns.
inline void sparse_dots_avx2(const Nonzeros& x, const std::uint8_t* rows, std::int64_t stride,
                             std::int32_t, std::int32_t* sums) {
  const __m256i ones = _mm256_set1_epi16(1), offset = _mm256_set1_epi8(-128);
  __m256i sum[2][4];
  for (auto& half : sum)
    for (__m256i& four : half) four = _mm256_setzero_si256();
  for (std::int64_t group = 0; group < x.groups; ++group) {
    const __m256i signs = _mm256_set1_epi32(x.four(group)), magnitude = _mm256_abs_epi8(signs);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      __m256i weights[dot_depth];
      for (int r = 0; r < dot_depth; ++r)
        weights[r] =
            _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(
                                 rows + x.places[group * dot_depth + r] * stride + half * 32)),
                             offset);
      const __m256i low01 = _mm256_unpacklo_epi8(weights[0], weights[1]),
                    high01 = _mm256_unpackhi_epi8(weights[0], weights[1]),
                    low23 = _mm256_unpacklo_epi8(weights[2], weights[3]),
                    high23 = _mm256_unpackhi_epi8(weights[2], weights[3]);
      const __m256i fours[] = {
          _mm256_unpacklo_epi16(low01, low23), _mm256_unpackhi_epi16(low01, low23),
          _mm256_unpacklo_epi16(high01, high23), _mm256_unpackhi_epi16(high01, high23)};
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i)
        sum[half][i] = _mm256_add_epi32(
            sum[half][i],
            _mm256_madd_epi16(_mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(fours[i], signs)),
                              ones));
    }
  }
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < 4; ++i) {
      std::int32_t* const first = sums + 32 * half + 4 * i;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(first),
                       _mm256_extracti128_si256(sum[half][i], 0));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(first + 16),
                       _mm256_extracti128_si256(sum[half][i], 1));
    }
}
#endif

/// sums[64 times blocks] of a row of activations with the sum `row_sum`; `rows` begins with the
/// first column.
using SparseDots = void (*)(const Nonzeros& x, const std::uint8_t* rows, std::int64_t stride,
                            std::int32_t row_sum, std::int32_t* sums);

/// The products of an instruction set: of[b - 1] sums b blocks of 64 columns; null: not written.
struct SparseTiles {
  static constexpr int max_blocks = 4;
  SparseDots of[max_blocks]{};

  explicit SparseTiles([[maybe_unused]] bool has_vnni) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
    if (has_vnni) {
      of[0] = sparse_dots_vnni<1>;
      of[1] = sparse_dots_vnni<2>;
      of[3] = sparse_dots_vnni<4>;
      return;
    }
#endif
#if defined(__AVX2__)
    of[0] = sparse_dots_avx2;
#endif
  }
};

}  // namespace
}  // namespace nmt::kernels
