#pragma once

#include "kernels/products/bfloat16.h"
#include "kernels/products/tile.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

// Matrices as VDPBF16PS of AVX-512 BF16 reads them: two elements that are consecutive along k side
// by side in bfloat16. Everything here has internal linkage, as in tile.h.

namespace nmt::kernels {
namespace {

/// Elements 2i (lower half) and 2i+1 (upper half) of a row of A or a column of B in bfloat16,
/// rounded to nearest even; values below 1.2e-38 become 0. A last element without a partner has 0.
enum class Pair : std::uint32_t {};

/// Elements along k of one element of a packed matrix.
template <class B>
constexpr std::int64_t along_k_per = 1;
template <>
constexpr std::int64_t along_k_per<Pair> = 2;

#if defined(__AVX512F__) && defined(__AVX512BW__)
/// Whether the processor has AVX-512 BF16. The environment variable NMT_BF16 set to 0 makes it
/// false, for tests.
inline bool has_pairs() {
  static const bool has = [] {
    const char* const setting = std::getenv("NMT_BF16");
    return __builtin_cpu_supports("avx512bf16") && !(setting && std::strcmp(setting, "0") == 0);
  }();
  return has;
}

/// Whether VDPBF16PS computes two multiply-adds in the time of one of float32, as on AMD since
/// Zen 4. On Intel processors it takes four times as long (docs/benchmarks/processors.md). NMT_BF16
/// set to 1 makes it true, for tests.
inline bool has_fast_pairs() {
  const char* const setting = std::getenv("NMT_BF16");
  return has_pairs() && (!__builtin_cpu_is("intel") || (setting && std::strcmp(setting, "1") == 0));
}

#if !defined(NMT_PAIR_FUNCTION)  // tests define it with the two instructions in plain AVX-512
/// Functions that use, or inline, the instructions of AVX-512 BF16.
#define NMT_PAIR_FUNCTION [[gnu::target("avx512bf16")]]
/// VCVTNE2PS2BF16: 16 floats in the lower half and the next 16 in the upper half.
NMT_PAIR_FUNCTION [[gnu::always_inline]] inline __m512i round_pairs(__m512 first, __m512 second) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
}
/// VDPBF16PS: sum + the products of the upper halves, then + those of the lower halves.
NMT_PAIR_FUNCTION [[gnu::always_inline]] inline __m512 add_products(__m512 sum, __m512 left,
                                                                    __m512 right) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(left), reinterpret_cast<__m512bh>(right));
}
#endif

/// The first n of 16 lanes.
[[gnu::always_inline]] inline __mmask16 lanes_below(std::int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xFFFF : n <= 0 ? 0 : (1 << n) - 1);
}

/// Rounds 16 floats and the next 16 to bfloat16. Part 0 has the rounded numbers; every further part
/// has what the parts before it leave, rounded. Three parts have all 24 bits of a float32 whose
/// magnitude is at least 2^-102, and values below 1.2e-38 are 0 in every part.
template <int parts>
NMT_PAIR_FUNCTION [[gnu::always_inline]] inline void round_to_parts(__m512 first, __m512 second,
                                                                    __m512i (&to)[parts]) {
#pragma GCC unroll 4
  for (int part = 0; part < parts; ++part) {
    to[part] = round_pairs(first, second);
    if (part + 1 == parts) break;
    // Full masks as in load() of tile.h.
    const auto value = [](__m256i half) __attribute__((always_inline)) {
      return _mm512_castsi512_ps(
          _mm512_maskz_slli_epi32(0xFFFF, _mm512_maskz_cvtepu16_epi32(0xFFFF, half), 16));
    };
    first = _mm512_sub_ps(first, value(_mm512_maskz_extracti64x4_epi64(0xF, to[part], 0)));
    second = _mm512_sub_ps(second, value(_mm512_maskz_extracti64x4_epi64(0xF, to[part], 1)));
  }
}

/// Pairs of n consecutive floats: ceil(n/2) of them. The parts are `part_stride` pairs apart.
template <int parts = 1>
NMT_PAIR_FUNCTION inline void pairs_of_row(const float* from, std::int64_t n, void* to,
                                           std::int64_t part_stride = 0) {
  auto* out = static_cast<Pair*>(to);
  __m512i both[parts];
  std::int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    round_to_parts(_mm512_loadu_ps(from + i), _mm512_loadu_ps(from + i + 16), both);
#pragma GCC unroll 4
    for (int part = 0; part < parts; ++part)
      _mm512_storeu_si512(out + i / 2 + part * part_stride, both[part]);
  }
  if (i == n) return;
  round_to_parts(_mm512_maskz_loadu_ps(lanes_below(n - i), from + i),
                 _mm512_maskz_loadu_ps(lanes_below(n - i - 16), from + i + 16), both);
#pragma GCC unroll 4
  for (int part = 0; part < parts; ++part)
    _mm512_mask_storeu_epi32(out + i / 2 + part * part_stride, lanes_below((n - i + 1) / 2),
                             both[part]);
}

/// Pair j is (even[j], odd[j]) for j < n <= 16; odd may be null: zeros. Pairs from n on are zero.
template <int parts>
NMT_PAIR_FUNCTION [[gnu::always_inline]] inline void pairs_of_two_rows(const float* even,
                                                                       const float* odd,
                                                                       __mmask16 columns,
                                                                       __m512i (&to)[parts]) {
  alignas(64) static constexpr std::uint16_t order[32] = {
      0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512 second = odd ? _mm512_maskz_loadu_ps(columns, odd) : _mm512_setzero_ps();
  round_to_parts(_mm512_maskz_loadu_ps(columns, even), second, to);
#pragma GCC unroll 4
  for (int part = 0; part < parts; ++part)
    to[part] = _mm512_maskz_permutexvar_epi16(~0u, _mm512_load_si512(order), to[part]);
}

/// A tile as tile() in tile.h, of pairs: `depth` counts pairs, and A is stored as pairs too. Every
/// output is one chain of VDPBF16PS, k ascending.
template <int rows, int panels, bool along_k>
NMT_PAIR_FUNCTION void pair_tile(const TileJob<Pair>& job) {
  const std::int64_t depth = job.depth, panel_stride = job.panel_stride, b_step = job.b_step,
                     ldc = job.ldc;
  const std::int64_t ahead_step = along_k_per<Pair> * job.ahead_step;
  const float *a = job.a, *ahead0 = job.ahead[0], *ahead1 = job.ahead[1];
  const Pair* b = job.b;
  float* const c = job.c;
  __m512 sum[rows][2 * panels];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < 2 * panels; ++v)
      sum[r][v] = job.accumulate ? _mm512_loadu_ps(c + r * ldc + v * lanes) : _mm512_setzero_ps();
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < 2 * panels; ++v) __builtin_prefetch(job.next + r * ldc + v * lanes, 1);
#pragma GCC unroll 1
  for (std::int64_t k = 0; k < depth; ++k, b += b_step) {
    if constexpr (!along_k && 2 * rows > tile_rows) {
      __builtin_prefetch(ahead0);
      __builtin_prefetch(ahead1);
      ahead0 += ahead_step;
      ahead1 += ahead_step;
    }
    __m512 right[2 * panels];
#pragma GCC unroll 8
    for (int v = 0; v < 2 * panels; ++v)
      right[v] = _mm512_loadu_ps(b + (v / 2) * panel_stride + (v % 2) * lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const __m512 left = _mm512_set1_ps(along_k ? a[k * tile_rows + r] : a[k + r * copied_stride]);
#pragma GCC unroll 8
      for (int v = 0; v < 2 * panels; ++v) sum[r][v] = add_products(sum[r][v], left, right[v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < 2 * panels; ++v) _mm512_storeu_ps(c + r * ldc + v * lanes, sum[r][v]);
}

/// rows[j] lane i -> rows[i] lane j. Full masks as in load() of tile.h.
[[gnu::always_inline]] inline void transpose16(__m512i (&rows)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_maskz_unpacklo_epi32(0xFFFF, rows[i], rows[i + 1]);
    t[i + 1] = _mm512_maskz_unpackhi_epi32(0xFFFF, rows[i], rows[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    rows[i] = _mm512_maskz_unpacklo_epi64(0xFF, t[i], t[i + 2]);
    rows[i + 1] = _mm512_maskz_unpackhi_epi64(0xFF, t[i], t[i + 2]);
    rows[i + 2] = _mm512_maskz_unpacklo_epi64(0xFF, t[i + 1], t[i + 3]);
    rows[i + 3] = _mm512_maskz_unpackhi_epi64(0xFF, t[i + 1], t[i + 3]);
  }
  // rows[4g + c] has columns c, c+4, c+8, c+12 of rows 4g to 4g+3, 128 bits each.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i low0 = _mm512_maskz_shuffle_i32x4(0xFFFF, rows[c], rows[4 + c], 0x88),
                  low1 = _mm512_maskz_shuffle_i32x4(0xFFFF, rows[8 + c], rows[12 + c], 0x88),
                  high0 = _mm512_maskz_shuffle_i32x4(0xFFFF, rows[c], rows[4 + c], 0xDD),
                  high1 = _mm512_maskz_shuffle_i32x4(0xFFFF, rows[8 + c], rows[12 + c], 0xDD);
    t[c] = _mm512_maskz_shuffle_i32x4(0xFFFF, low0, low1, 0x88);
    t[8 + c] = _mm512_maskz_shuffle_i32x4(0xFFFF, low0, low1, 0xDD);
    t[4 + c] = _mm512_maskz_shuffle_i32x4(0xFFFF, high0, high1, 0x88);
    t[12 + c] = _mm512_maskz_shuffle_i32x4(0xFFFF, high0, high1, 0xDD);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) rows[i] = t[i];
}

/// 16 columns of pairs from rows [k_begin, k_end) of B stored [n,k]: `columns` of them start at
/// b and are ldb apart, the others are zero. The pairs of one k are panel_width apart, the parts of
/// 16 pairs `part_stride`.
template <int parts>
NMT_PAIR_FUNCTION inline void pack_pairs_of_columns(const float* b, std::int64_t ldb,
                                                    std::int64_t columns, std::int64_t k_begin,
                                                    std::int64_t k_end, Pair* to,
                                                    std::int64_t part_stride) {
  for (std::int64_t k = k_begin; k < k_end; k += 32) {
    const __mmask16 first = lanes_below(k_end - k), second = lanes_below(k_end - k - 16);
    __m512i rows[parts][16];
#pragma GCC unroll 16
    for (int j = 0; j < 16; ++j) {
      __m512i both[parts];
      const float* const from = j < columns ? b + j * ldb + k : b;
      round_to_parts(_mm512_maskz_loadu_ps(j < columns ? first : 0, from),
                     _mm512_maskz_loadu_ps(j < columns ? second : 0, from + 16), both);
#pragma GCC unroll 4
      for (int part = 0; part < parts; ++part) rows[part][j] = both[part];
    }
    const std::int64_t pairs = (k_end - k + 1) / 2;
#pragma GCC unroll 4
    for (int part = 0; part < parts; ++part) {
      transpose16(rows[part]);
      Pair* const out = to + part * part_stride + (k - k_begin) / 2 * parts * panel_width;
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i)
        if (i < pairs) _mm512_storeu_si512(out + i * panel_width, rows[part][i]);
    }
  }
}

/// pack_panels() of product.h in pairs; k_begin is even, and k_end even or the end of k. Where a
/// number has several parts, they stand side by side for every 16 rows of pairs, `part_stride`
/// apart.
template <int parts = 1>
NMT_PAIR_FUNCTION inline void pack_pairs(bool transpose_b, std::int64_t k_begin, std::int64_t k_end,
                                         std::int64_t n_begin, std::int64_t n_end, const float* b,
                                         std::int64_t ldb, Pair* packed, std::int64_t panel_stride,
                                         std::int64_t part_stride = 0) {
  static_assert(panel_width == 32);
  if (transpose_b) {
    for (std::int64_t n = n_begin; n < n_end; n += panel_width, packed += panel_stride)
      for (int half = 0; half < 2; ++half) {
        const std::int64_t column = n + 16 * half;
        pack_pairs_of_columns<parts>(b + column * ldb, ldb, n_end - column, k_begin, k_end,
                                     packed + 16 * half, part_stride);
      }
    return;
  }
  // Whole rows of B, which the processor prefetches: the part of a row in one panel is too short.
  for (std::int64_t k = k_begin; k < k_end; k += 2) {
    const float *even = b + k * ldb, *odd = k + 1 < k_end ? even + ldb : nullptr;
    const std::int64_t row = (k - k_begin) / 2;
    Pair* to = packed + (row + row / 16 * 16 * (parts - 1)) * panel_width;
    for (std::int64_t n = n_begin; n < n_end; n += panel_width, to += panel_stride)
      for (int half = 0; half < 2; ++half) {
        const std::int64_t column = n + 16 * half;
        __m512i pairs[parts];
        pairs_of_two_rows(even + column, odd ? odd + column : nullptr, lanes_below(n_end - column),
                          pairs);
#pragma GCC unroll 4
        for (int part = 0; part < parts; ++part)
          _mm512_storeu_si512(to + 16 * half + part * part_stride, pairs[part]);
      }
  }
}
#else
inline bool has_pairs() {
  return false;
}
inline bool has_fast_pairs() {
  return false;
}
#endif

/// Rounds n floats to bfloat16 in place: the inputs of a product without AVX-512 BF16.
inline void round_to_bf16(float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x[i] = from_bf16(to_bf16(x[i]));
}

}  // namespace
}  // namespace nmt::kernels
