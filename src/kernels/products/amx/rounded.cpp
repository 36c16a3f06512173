#include "kernels/products/amx/pair_product.h"
#include "kernels/products/amx/self_check.h"
#include "kernels/products/amx/support.h"
#include "kernels/products/amx/tiles.h"
#include "kernels/products/rounded_products.h"

namespace nmt::kernels {

const RoundedProducts* amx_products() {
#if defined(__AVX512F__) && defined(__AVX512BW__)
  static const bool has =
      has_pairs() && amx_to_use().bfloat16 && tiles_pass_check<AmxTiles, TileElements::bfloat16>();
  static constexpr RoundedProducts products{"bfloat16 by AMX", true, tiled_height, pack_for_tiles,
                                            tiled_part<AmxTiles>};
  if (has) return &products;
#endif
  return nullptr;
}

}  // namespace nmt::kernels
