#pragma once

#include "kernels/products/rounded_products.h"

namespace nmt::kernels {

/// Products in bfloat16 by the code for AMX over emulated tiles. Null: the processor or the
/// compiler has no AVX-512 BF16, with which that code rounds and packs.
const RoundedProducts* emulated_amx_products();
/// The same with three numbers in bfloat16 for each input.
const RoundedProducts* emulated_amx_split_products();

}  // namespace nmt::kernels
