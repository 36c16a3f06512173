// Compiled for x86-64-v4 like the kernels that use AMX, also where a build has no such kernels.

#include "tests/kernels/amx/emulated_products.h"

#include "kernels/products/amx/pair_product.h"
#include "tests/kernels/amx/emulated_tiles.h"

namespace nmt::kernels {

namespace {

template <int parts>
const RoundedProducts* products_of(const char* name) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
  static const RoundedProducts products = tiled_products<EmulatedTiles, parts>(name);
  const bool runs = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bf16");
  return runs ? &products : nullptr;
#else
  static_cast<void>(name);
  return nullptr;
#endif
}

}  // namespace

const RoundedProducts* emulated_amx_products() {
  return products_of<1>("bfloat16 by emulated AMX");
}

const RoundedProducts* emulated_amx_split_products() {
  return products_of<3>("float32 as three numbers in bfloat16 by emulated AMX");
}

}  // namespace nmt::kernels
