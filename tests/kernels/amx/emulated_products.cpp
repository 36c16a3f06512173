// Compiled for x86-64-v4 like the kernels that use AMX, also where a build has no such kernels.

#include "tests/kernels/amx/emulated_products.h"

#include "kernels/products/amx/pair_product.h"
#include "tests/kernels/amx/emulated_tiles.h"

namespace nmt::kernels {

const RoundedProducts* emulated_amx_products() {
#if defined(__AVX512F__) && defined(__AVX512BW__)
  static constexpr RoundedProducts products{"bfloat16 by emulated AMX", true, tiled_height,
                                            pack_for_tiles, tiled_part<EmulatedTiles>};
  const bool runs = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bf16");
  return runs ? &products : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace nmt::kernels
