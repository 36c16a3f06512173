#include "kernels/products/amx/pair_product.h"
#include "kernels/products/amx/self_check.h"
#include "kernels/products/amx/support.h"
#include "kernels/products/amx/tiles.h"
#include "kernels/products/bf16/bf16_products.h"

namespace nmt::kernels {
namespace {

#if defined(__AVX512F__) && defined(__AVX512BW__)
bool has_bf16_tiles() {
  static const bool has =
      has_pairs() && amx_to_use().bfloat16 && tiles_pass_check<AmxTiles, TileElements::bfloat16>();
  return has;
}
#endif

template <int parts>
const Bf16Products* products_of(const char* name) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
  static const Bf16Products products = tiled_products<AmxTiles, parts>(name);
  if (has_bf16_tiles()) return &products;
#endif
  static_cast<void>(name);
  return nullptr;
}

}  // namespace

const Bf16Products* amx_products() {
  return products_of<1>("bfloat16 by AMX");
}

const Bf16Products* amx_split_products() {
  return products_of<3>("float32 as three numbers in bfloat16 by AMX");
}

}  // namespace nmt::kernels
