#include "app/benchmark/instruction_loops.h"

#if defined(__x86_64__)
#include <cstring>

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
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

// Tiles 0 to 3 accumulate products of 4 and 5 with 6 and 7, all of 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
constexpr std::int64_t tile_bytes = 16 * 64, tile_products = 4;

template <class Element>
[[gnu::target("amx-tile")]] void load_tiles(Element one) {
  TileConfig config;
  for (int i = 0; i < 8; ++i) config.row_bytes[i] = 64, config.rows[i] = 16;
  _tile_loadconfig(&config);
  alignas(64) Element ones[tile_bytes / sizeof(Element)];
  for (Element& each : ones) each = one;
  _tile_loadd(4, ones, 64);
  _tile_loadd(5, ones, 64);
  _tile_loadd(6, ones, 64);
  _tile_loadd(7, ones, 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

template <class Element>
[[gnu::target("amx-tile")]] double first_sum() {
  alignas(64) Element out[tile_bytes / sizeof(Element)];
  _tile_stored(0, out, 64);
  _tile_release();
  return static_cast<double>(out[0]);
}

[[gnu::target("amx-tile,amx-bf16")]] std::int64_t bfloat16_amx(std::int64_t rounds, double* sum) {
  load_tiles<std::uint16_t>(0x3F80);
  for (std::int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  *sum = first_sum<float>();
  return rounds * tile_products * 16 * 16 * 32 * 2;
}

[[gnu::target("amx-tile,amx-int8")]] std::int64_t int8_amx(std::int64_t rounds, double* sum) {
  load_tiles<std::int8_t>(1);
  for (std::int64_t round = 0; round < rounds; ++round) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  *sum = first_sum<std::int32_t>();
  return rounds * tile_products * 16 * 16 * 64 * 2;
}

// Whether Linux lets the process use the tiles' state: arch_prctl(ARCH_REQ_XCOMP_PERM,
// XFEATURE_XTILEDATA), Documentation/arch/x86/xstate.rst of Linux 5.16 and later.
bool may_use_tiles() {
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}

bool cpuid_bit(unsigned leaf, unsigned subleaf, int reg, int bit) {
  unsigned regs[4] = {};
  return __get_cpuid_count(leaf, subleaf, &regs[0], &regs[1], &regs[2], &regs[3]) != 0 &&
         (regs[reg] >> bit & 1u) != 0;
}

}  // namespace

std::vector<InstructionLoop> instruction_loops() {
  std::vector<InstructionLoop> loops;
  const auto add = [&](bool available, const char* name, auto* run) {
    if (available) loops.push_back({name, run});
  };
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
             avx512 = __builtin_cpu_supports("avx512f");
  constexpr int edx = 3;  // of CPUID leaf 7, subleaf 0
  const bool tiles = cpuid_bit(7, 0, edx, 24) && may_use_tiles();
  add(avx2, "float32 AVX2", float32_avx2);
  add(avx512, "float32 AVX-512", float32_avx512);
  add(avx512 && __builtin_cpu_supports("avx512bf16"), "bfloat16 AVX-512 BF16", bfloat16_avx512);
  add(tiles && cpuid_bit(7, 0, edx, 22), "bfloat16 AMX", bfloat16_amx);
  add(avx2, "int8 AVX2", int8_avx2);
  add(avx512 && __builtin_cpu_supports("avx512vnni"), "int8 AVX-512 VNNI", int8_vnni);
  add(tiles && cpuid_bit(7, 0, edx, 25), "int8 AMX", int8_amx);
  return loops;
}
#else
std::vector<InstructionLoop> instruction_loops() {
  return {};
}
#endif

}  // namespace nmt::app::bench
