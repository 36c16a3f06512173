#pragma once

#include "kernels/products/bf16/bf16_products.h"

#include <cstdint>

namespace nmt::kernels {

// Null, or without functions: the processor has no AVX-512, or the compiler is not for x86-64.

/// Products in bfloat16 by the code for AMX over emulated tiles, and emulated instructions of
/// AVX-512 BF16, with which that code rounds and packs.
const Bf16Products* emulated_amx_products();
/// The same with three numbers in bfloat16 for each input.
const Bf16Products* emulated_amx_split_products();
/// Products in bfloat16 by the code for AVX-512 BF16 over its emulated instructions.
const Bf16Products* emulated_pair_products();

/// The instructions of AVX-512 BF16 on 32 elements.
struct PairInstructions {
  /// VCVTNE2PS2BF16: from[32] to to[32].
  void (*round)(const float* from, std::uint16_t* to) = nullptr;
  /// VDPBF16PS: sums[16] plus the products of pairs of a[32] and b[32].
  void (*add_products)(const std::uint16_t* a, const std::uint16_t* b, float* sums) = nullptr;
};
PairInstructions emulated_pair_instructions();
/// Without functions where this processor has none.
PairInstructions processor_pair_instructions();

}  // namespace nmt::kernels
