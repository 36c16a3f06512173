#include "app/benchmark/instruction_loops.h"

#include "kernels/products/amx/support.h"
#include "kernels/products/amx/tiles.h"

#if defined(__x86_64__)
#include <cstring>

#include <immintrin.h>
#endif

namespace nmt::app::bench {
#if defined(__x86_64__)
namespace {

// Accumulators of a vector loop: enough to hide the latency of an instruction.
constexpr int chains = 12;

// Makes the compiler keep all accumulators; the first element of the first one is the sum.
template <class Element, class Vector>
void use(const Vector (&total)[chains], double* sum) {
  Element elements[chains * (sizeof(Vector) / sizeof(Element))];
  std::memcpy(elements, total, sizeof total);
  asm volatile("" : : "g"(elements) : "memory");
  *sum = static_cast<double>(elements[0]);
}

// The accumulators start with different values, since a compiler may compute equal chains once.

[[gnu::target("avx2,fma")]] std::int64_t float32_avx2(std::int64_t rounds, double* sum) {
  const __m256 one = _mm256_set1_ps(1);
  __m256 total[chains];
  for (int i = 0; i < chains; ++i) total[i] = _mm256_set1_ps(static_cast<float>(i));
  for (std::int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) total[i] = _mm256_fmadd_ps(one, one, total[i]);
  use<float>(total, sum);
  return rounds * chains * 8 * 2;
}

[[gnu::target("avx512f")]] std::int64_t float32_avx512(std::int64_t rounds, double* sum) {
  const __m512 one = _mm512_set1_ps(1);
  __m512 total[chains];
  for (int i = 0; i < chains; ++i) total[i] = _mm512_set1_ps(static_cast<float>(i));
  for (std::int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) total[i] = _mm512_fmadd_ps(one, one, total[i]);
  use<float>(total, sum);
  return rounds * chains * 16 * 2;
}

[[gnu::target("avx512f,avx512bf16")]] std::int64_t bfloat16_avx512(std::int64_t rounds,
                                                                   double* sum) {
  const __m512i ones = _mm512_set1_epi16(0x3F80);
  __m512bh one;
  std::memcpy(&one, &ones, sizeof one);
  __m512 total[chains];
  for (int i = 0; i < chains; ++i) total[i] = _mm512_set1_ps(static_cast<float>(i));
  for (std::int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) total[i] = _mm512_dpbf16_ps(total[i], one, one);
  use<float>(total, sum);
  return rounds * chains * 32 * 2;
}

// Three instructions for 32 multiply-adds: products of bytes, sums of four, the accumulator.
[[gnu::target("avx2")]] std::int64_t int8_avx2(std::int64_t rounds, double* sum) {
  __m256i one = _mm256_set1_epi8(1);
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i total[chains];
  for (int i = 0; i < chains; ++i) total[i] = _mm256_set1_epi32(i);
  for (std::int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) {
      asm volatile("" : "+x"(one));  // or the products would be computed once
      total[i] =
          _mm256_add_epi32(total[i], _mm256_madd_epi16(_mm256_maddubs_epi16(one, one), ones));
    }
  use<std::int32_t>(total, sum);
  return rounds * chains * 32 * 2;
}

[[gnu::target("avx512f,avx512vnni")]] std::int64_t int8_vnni(std::int64_t rounds, double* sum) {
  const __m512i one = _mm512_set1_epi32(0x01010101);
  __m512i total[chains];
  for (int i = 0; i < chains; ++i) total[i] = _mm512_set1_epi32(i);
  for (std::int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) total[i] = _mm512_dpbusd_epi32(total[i], one, one);
  use<std::int32_t>(total, sum);
  return rounds * chains * 64 * 2;
}

using kernels::AmxTiles;

// Tiles 0 to 3 accumulate products of 4 and 5 with 6 and 7, all of 16 rows of 64 bytes. `add` adds
// the product of two tiles.
template <class Element, class Sum, class Add>
double sum_tiles(std::int64_t rounds, Element one, const Add& add) {
  constexpr std::int64_t row = kernels::max_tile_bytes, bytes = kernels::max_tile_rows * row;
  const kernels::TileSession<AmxTiles> session(
      kernels::product_tiles(kernels::max_tile_rows, row / 4));
  alignas(64) Element ones[bytes / sizeof(Element)];
  for (Element& each : ones) each = one;
  AmxTiles::load<4>(ones, row);
  AmxTiles::load<5>(ones, row);
  AmxTiles::load<6>(ones, row);
  AmxTiles::load<7>(ones, row);
  for (std::int64_t round = 0; round < rounds; ++round) add();
  alignas(64) Sum out[bytes / sizeof(Sum)];
  AmxTiles::store<0>(out, row);
  return static_cast<double>(out[0]);
}
constexpr std::int64_t tile_products = 4;

std::int64_t bfloat16_amx(std::int64_t rounds, double* sum) {
  *sum = sum_tiles<std::uint16_t, float>(rounds, 0x3F80, [] {
    AmxTiles::add_bfloat16<0, 4, 6>();
    AmxTiles::add_bfloat16<1, 4, 7>();
    AmxTiles::add_bfloat16<2, 5, 6>();
    AmxTiles::add_bfloat16<3, 5, 7>();
  });
  return rounds * tile_products * 16 * 16 * 32 * 2;
}

std::int64_t int8_amx(std::int64_t rounds, double* sum) {
  *sum = sum_tiles<std::int8_t, std::int32_t>(rounds, 1, [] {
    AmxTiles::add_int8<0, 4, 6>();
    AmxTiles::add_int8<1, 4, 7>();
    AmxTiles::add_int8<2, 5, 6>();
    AmxTiles::add_int8<3, 5, 7>();
  });
  return rounds * tile_products * 16 * 16 * 64 * 2;
}

}  // namespace

std::vector<InstructionLoop> instruction_loops() {
  std::vector<InstructionLoop> loops;
  const auto add = [&](bool available, const char* name, auto* run) {
    if (available) loops.push_back({name, run});
  };
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
             avx512 = __builtin_cpu_supports("avx512f");
  const kernels::AmxSupport amx = kernels::amx_support();
  add(avx2, "float32 AVX2", float32_avx2);
  add(avx512, "float32 AVX-512", float32_avx512);
  add(avx512 && __builtin_cpu_supports("avx512bf16"), "bfloat16 AVX-512 BF16", bfloat16_avx512);
  add(amx.bfloat16, "bfloat16 AMX", bfloat16_amx);
  add(avx2, "int8 AVX2", int8_avx2);
  add(avx512 && __builtin_cpu_supports("avx512vnni"), "int8 AVX-512 VNNI", int8_vnni);
  add(amx.int8, "int8 AMX", int8_amx);
  return loops;
}

std::int64_t run_latency_loop(std::int64_t rounds) {
  std::int64_t value = 3;
  for (std::int64_t round = 0; round < rounds; round += 8)
    asm volatile(
        "imul %0, %0\n imul %0, %0\n imul %0, %0\n imul %0, %0\n"
        "imul %0, %0\n imul %0, %0\n imul %0, %0\n imul %0, %0"
        : "+r"(value));
  return (rounds + 7) / 8 * 8 * 3;
}
#else
std::vector<InstructionLoop> instruction_loops() {
  return {};
}

std::int64_t run_latency_loop(std::int64_t) {
  return 0;
}
#endif

}  // namespace nmt::app::bench
