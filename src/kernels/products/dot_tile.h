#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__SSSE3__)
#include <immintrin.h>
#endif

// The innermost tile of the int8 GEMM: rows x 16 columns of int32 sums over the whole inner
// dimension. Activations are int8; weights are stored as q + 128, with four consecutive k of a
// column adjacent, as the dot-product instructions read them.

namespace nmt::kernels {
namespace {

constexpr int dot_columns = 16;  // columns of a panel
constexpr int dot_depth = 4;     // adjacent k of a column
constexpr int dot_rows = 12;     // maximum rows of a tile

/// sums[r][j] = sum over k of p[r,k] q[k,j] for `depth` groups of four k. a: [rows][stride] int8;
/// panel: [depth][16][4]; row_sums[r]: sum over k of row r of a.
using DotTile = void (*)(std::int64_t depth, const std::int8_t* a, std::int64_t stride,
                         const std::int32_t* row_sums, const std::uint8_t* panel,
                         std::int32_t* sums);

#if defined(__AVX512F__) && defined(__AVX512BW__)
// VNNI multiplies unsigned weights by signed activations and adds four products per instruction.
// The offset 128 is removed with the row sum.
template <int rows>
[[gnu::target("avx512vnni")]] void dot_tile_vnni(std::int64_t depth, const std::int8_t* a,
                                                 std::int64_t stride, const std::int32_t* row_sums,
                                                 const std::uint8_t* panel, std::int32_t* sums) {
  // Several independent accumulators per row when there are few rows, to hide the latency.
  constexpr int chains = rows <= 4 ? 4 : rows <= 6 ? 2 : 1;
  __m512i sum[rows][chains];
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < chains; ++i) sum[r][i] = _mm512_setzero_si512();
  const auto step = [&](std::int64_t k, int chain)
      __attribute__((always_inline, target("avx512vnni"))) {
    const __m512i weights = _mm512_loadu_si512(panel + k * 64);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      std::int32_t four;
      std::memcpy(&four, a + r * stride + k * 4, 4);
      sum[r][chain] = _mm512_dpbusd_epi32(sum[r][chain], weights, _mm512_set1_epi32(four));
    }
  };
  std::int64_t k = 0;
  for (; k + chains <= depth; k += chains)
#pragma GCC unroll 4
    for (int i = 0; i < chains; ++i) step(k + i, i);
  for (; k < depth; ++k) step(k, 0);
  for (int r = 0; r < rows; ++r) {
    for (int i = 1; i < chains; ++i) sum[r][0] = _mm512_add_epi32(sum[r][0], sum[r][i]);
    _mm512_storeu_si512(sums + r * dot_columns,
                        _mm512_sub_epi32(sum[r][0], _mm512_set1_epi32(128 * row_sums[r])));
  }
}
#endif

#if defined(__AVX2__)
// |p| (unsigned) times q with the sign of p: pairs stay within 2 * 127 * 127 < 2^15, so nothing
// saturates.
template <int rows>
void dot_tile_plain(std::int64_t depth, const std::int8_t* a, std::int64_t stride,
                    const std::int32_t*, const std::uint8_t* panel, std::int32_t* sums) {
  const __m256i ones = _mm256_set1_epi16(1), offset = _mm256_set1_epi8(-128);
  for (int first = 0; first < rows; first += 4) {
    const int count = rows - first < 4 ? rows - first : 4;
    __m256i sum[4][2];
    for (auto& row : sum) row[0] = row[1] = _mm256_setzero_si256();
    for (std::int64_t k = 0; k < depth; ++k) {
      __m256i weights[2];
      for (int half = 0; half < 2; ++half)
        weights[half] = _mm256_xor_si256(
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panel + k * 64 + half * 32)),
            offset);
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        if (r >= count) break;
        std::int32_t four;
        std::memcpy(&four, a + (first + r) * stride + k * 4, 4);
        const __m256i signs = _mm256_set1_epi32(four), magnitude = _mm256_abs_epi8(signs);
        for (int half = 0; half < 2; ++half)
          sum[r][half] = _mm256_add_epi32(
              sum[r][half],
              _mm256_madd_epi16(
                  _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(weights[half], signs)), ones));
      }
    }
    for (int r = 0; r < count; ++r)
      for (int half = 0; half < 2; ++half)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + (first + r) * dot_columns + half * 8),
                            sum[r][half]);
  }
}
#else
template <int rows>
void dot_tile_plain(std::int64_t depth, const std::int8_t* a, std::int64_t stride,
                    const std::int32_t* row_sums, const std::uint8_t* panel, std::int32_t* sums) {
  for (int r = 0; r < rows; ++r) {
    std::int32_t sum[dot_columns] = {};
    for (std::int64_t k = 0; k < depth; ++k)
      for (int j = 0; j < dot_columns; ++j)
        for (int i = 0; i < dot_depth; ++i)
          sum[j] += std::int32_t{a[r * stride + k * 4 + i]} * panel[k * 64 + j * 4 + i];
    for (int j = 0; j < dot_columns; ++j) sums[r * dot_columns + j] = sum[j] - 128 * row_sums[r];
  }
}
#endif

template <int rows>
DotTile dot_tile_for(bool vnni) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
  if (vnni) return dot_tile_vnni<rows>;
#else
  static_cast<void>(vnni);
#endif
  return dot_tile_plain<rows>;
}

/// tiles[r - 1] computes r rows.
struct DotTiles {
  DotTiles() {
#if defined(__AVX512F__) && defined(__AVX512BW__)
    const char* const setting = std::getenv("NMT_VNNI");  // 0: off, for tests
    const bool vnni =
        __builtin_cpu_supports("avx512vnni") && !(setting && std::strcmp(setting, "0") == 0);
#else
    const bool vnni = false;
#endif
    static_assert(dot_rows == 12);
    const DotTile all[] = {dot_tile_for<1>(vnni),  dot_tile_for<2>(vnni),  dot_tile_for<3>(vnni),
                           dot_tile_for<4>(vnni),  dot_tile_for<5>(vnni),  dot_tile_for<6>(vnni),
                           dot_tile_for<7>(vnni),  dot_tile_for<8>(vnni),  dot_tile_for<9>(vnni),
                           dot_tile_for<10>(vnni), dot_tile_for<11>(vnni), dot_tile_for<12>(vnni)};
    for (int r = 0; r < dot_rows; ++r) tiles[r] = all[r];
  }
  DotTile tiles[dot_rows];
};

}  // namespace
}  // namespace nmt::kernels
