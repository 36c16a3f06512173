// Compiled for x86-64-v4 like the kernels that use AVX-512 BF16 and AMX, also where a build has no
// such kernels. Without AVX-512 BF16: its instructions are emulated too.

#include "tests/kernels/amx/emulated_products.h"

#if defined(__AVX512F__) && defined(__AVX512BW__)
#include "tests/kernels/amx/emulated_pairs.h"
#endif

#include "kernels/products/amx/pair_product.h"
#include "kernels/products/blocks/multiply.h"
#include "tests/kernels/amx/emulated_tiles.h"

namespace nmt::kernels {

#if defined(__AVX512F__) && defined(__AVX512BW__)
namespace {

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

template <int parts>
const Bf16Products* products_of(const char* name) {
  static const Bf16Products products = tiled_products<EmulatedTiles, parts>(name);
  return has_avx512() ? &products : nullptr;
}

}  // namespace

const Bf16Products* emulated_amx_products() {
  return products_of<1>("bfloat16 by emulated AMX");
}

const Bf16Products* emulated_amx_split_products() {
  return products_of<3>("float32 as three numbers in bfloat16 by emulated AMX");
}

const Bf16Products* emulated_pair_products() {
  static constexpr Bf16Products products{"bfloat16 by emulated AVX-512 BF16",
                                         true,
                                         1,
                                         column_elements<Pair>,
                                         pack_columns_of_pairs,
                                         multiply_part<Pair>};
  return has_avx512() ? &products : nullptr;
}

PairInstructions emulated_pair_instructions() {
  if (!has_avx512()) return {};
  return {[](const float* from, std::uint16_t* to) {
            _mm512_storeu_si512(to, round_pairs(_mm512_loadu_ps(from), _mm512_loadu_ps(from + 16)));
          },
          [](const std::uint16_t* a, const std::uint16_t* b, float* sums) {
            _mm512_storeu_ps(
                sums, add_products(_mm512_loadu_ps(sums), _mm512_loadu_ps(a), _mm512_loadu_ps(b)));
          }};
}

namespace {

[[gnu::target("avx512bf16")]] void round_by_processor(const float* from, std::uint16_t* to) {
  const auto both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + 16), _mm512_loadu_ps(from));
  _mm512_storeu_si512(to, reinterpret_cast<__m512i>(both));
}
[[gnu::target("avx512bf16")]] void add_by_processor(const std::uint16_t* a, const std::uint16_t* b,
                                                    float* sums) {
  const auto left = reinterpret_cast<__m512bh>(_mm512_loadu_si512(a)),
             right = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b));
  _mm512_storeu_ps(sums, _mm512_dpbf16_ps(_mm512_loadu_ps(sums), left, right));
}

}  // namespace

PairInstructions processor_pair_instructions() {
  if (!__builtin_cpu_supports("avx512bf16")) return {};
  return {round_by_processor, add_by_processor};
}
#else
const Bf16Products* emulated_amx_products() {
  return nullptr;
}
const Bf16Products* emulated_amx_split_products() {
  return nullptr;
}
const Bf16Products* emulated_pair_products() {
  return nullptr;
}
PairInstructions emulated_pair_instructions() {
  return {};
}
PairInstructions processor_pair_instructions() {
  return {};
}
#endif

}  // namespace nmt::kernels
