#pragma once

#include "kernels/products/int8/part.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#if defined(__SSSE3__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

// The innermost tiles of the int8 GEMM: int32 sums of some rows and some panels of 16 columns over
// the whole inner dimension. Activations are int8; weights are stored as q + 128, with four
// consecutive k of a column adjacent, as the dot-product instructions read them.

namespace nmt::kernels {
namespace {

constexpr int max_dot_rows = 12, max_dot_panels = 4;

/// sums[r][j] = sum over k of p[r,k] q[k,j] for `depth` groups of four k. a: [rows][stride] int8;
/// panel: [panels][depth][16][4]; row_sums[r]: sum over k of row r of a; sums: [rows][panels*16].
using DotTile = void (*)(std::int64_t depth, const std::int8_t* a, std::int64_t stride,
                         const std::int32_t* row_sums, const std::uint8_t* panel,
                         std::int32_t* sums);

#if defined(__AVX512F__) && defined(__AVX512BW__)
#define NMT_VNNI_INLINE [[gnu::target("avx512vnni"), gnu::always_inline]] inline

// Adds four products of unsigned weights and signed activations to each sum. g++ 12 copies its sums
// to the stack and back around the intrinsic.
NMT_VNNI_INLINE void add_dots(__m512i& sums, __m512i weights, __m512i activations) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(weights), "v"(activations));
}

// Every sum is a register: `i` numbers those of [rows][panels].
template <int rows, int panels, int... i>
NMT_VNNI_INLINE void dot_tile_of(std::integer_sequence<int, i...>, std::int64_t depth,
                                 const std::int8_t* a, std::int64_t stride,
                                 const std::int32_t* row_sums, const std::uint8_t* panel,
                                 std::int32_t* sums) {
  static_assert(rows * panels + panels + 1 <= 32, "more registers than there are");
  __m512i sum[rows * panels];
  ((sum[i] = _mm512_setzero_si512()), ...);
  for (std::int64_t k = 0; k < depth; ++k) {
    __m512i weights[panels], activations;
    for (int p = 0; p < panels; ++p) {
      weights[p] = _mm512_loadu_si512(panel + (p * depth + k) * dot_columns * dot_depth);
      asm("" : "+v"(weights[p]));  // loaded once: with few sums, g++ 12 loads it again for each row
    }
    const auto load = [&](int row) __attribute__((always_inline, target("avx512vnni"))) {
      std::int32_t four;
      std::memcpy(&four, a + row * stride + k * dot_depth, dot_depth);
      activations = _mm512_set1_epi32(four);
    };
    ((i % panels == 0 ? load(i / panels) : void(),
      add_dots(sum[i], weights[i % panels], activations)),
     ...);
  }
  // Without the offset of the weights.
  ((_mm512_storeu_si512(sums + i * dot_columns,
                        _mm512_sub_epi32(sum[i], _mm512_set1_epi32(128 * row_sums[i / panels])))),
   ...);
}
template <int rows, int panels>
[[gnu::target("avx512vnni")]] void dot_tile_vnni(std::int64_t depth, const std::int8_t* a,
                                                 std::int64_t stride, const std::int32_t* row_sums,
                                                 const std::uint8_t* panel, std::int32_t* sums) {
  dot_tile_of<rows, panels>(std::make_integer_sequence<int, rows * panels>(), depth, a, stride,
                            row_sums, panel, sums);
}
#undef NMT_VNNI_INLINE
#endif

#if defined(__aarch64__)
#define NMT_SDOT [[gnu::target("arch=armv8.2-a+dotprod")]]

// Arm's dot products (SDOT, Armv8.2) of signed weights and activations.
template <int rows>
NMT_SDOT void dot_tile_sdot(std::int64_t depth, const std::int8_t* a, std::int64_t stride,
                            const std::int32_t*, const std::uint8_t* panel, std::int32_t* sums) {
  constexpr int parts = dot_columns / 4;
  static_assert(rows * parts + parts + 1 <= 32, "more registers than there are");
  const uint8x16_t offset = vdupq_n_u8(128);
  int32x4_t sum[rows][parts];
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) sum[r][p] = vdupq_n_s32(0);
  for (std::int64_t k = 0; k < depth; ++k) {
    int8x16_t weights[parts];
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p)
      weights[p] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(panel + k * 64 + p * 16), offset));
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      std::int32_t four;
      std::memcpy(&four, a + r * stride + k * dot_depth, dot_depth);
      const int8x16_t activations = vreinterpretq_s8_s32(vdupq_n_s32(four));
#pragma GCC unroll 4
      for (int p = 0; p < parts; ++p) sum[r][p] = vdotq_s32(sum[r][p], weights[p], activations);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) vst1q_s32(sums + r * dot_columns + p * 4, sum[r][p]);
}
#undef NMT_SDOT
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

/// The tiles of an instruction set: whole[r - 1] computes r rows of `panels` panels, single[r - 1]
/// of one.
struct DotTiles {
  int rows = max_dot_rows, panels = 1;
  bool has_vnni = false;
  const char* instructions = "vectors";
  DotTile whole[max_dot_rows]{}, single[max_dot_rows]{};

  DotTiles() {
#if defined(__AVX512F__) && defined(__AVX512BW__)
    const char* const setting = std::getenv("NMT_VNNI");  // 0: off, for tests
    if (__builtin_cpu_supports("avx512vnni") && !(setting && std::strcmp(setting, "0") == 0)) {
      // 24 sums and 4 weights in 32 registers: the loads of a step are half of its products.
      has_vnni = true;
      instructions = "VNNI";
      rows = 6;
      panels = max_dot_panels;
      set_vnni(std::make_integer_sequence<int, 6>());
      return;
    }
#elif defined(__aarch64__)
    if (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) {
      instructions = "SDOT";
      rows = 6;  // 24 sums, 4 weights and the activations in 32 registers
      set_sdot(std::make_integer_sequence<int, 6>());
      return;
    }
#endif
    set_plain(std::make_integer_sequence<int, max_dot_rows>());
  }

 private:
  template <int... r>
  void set_plain(std::integer_sequence<int, r...>) {
    ((whole[r] = single[r] = dot_tile_plain<r + 1>), ...);
  }
#if defined(__AVX512F__) && defined(__AVX512BW__)
  template <int... r>
  void set_vnni(std::integer_sequence<int, r...>) {
    ((whole[r] = dot_tile_vnni<r + 1, max_dot_panels>), ...);
    ((single[r] = dot_tile_vnni<r + 1, 1>), ...);
  }
#elif defined(__aarch64__)
  template <int... r>
  void set_sdot(std::integer_sequence<int, r...>) {
    ((whole[r] = single[r] = dot_tile_sdot<r + 1>), ...);
  }
#endif
};

}  // namespace
}  // namespace nmt::kernels
