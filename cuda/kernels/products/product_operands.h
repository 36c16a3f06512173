#pragma once

#include "cuda/libraries/blas.h"
#include "cuda/runtime/state.h"
#include "kernels/products/product_input.h"

namespace nmt::cuda {

/// Whether weights are packed in bfloat16: on a device whose products read bfloat16, so that they
/// are rounded once. They are stored in the first half of the floats of a packed matrix.
inline bool packs_bfloat16(const Cuda& cuda) {
  return state_of(cuda).precision == Precision::bfloat16;
}
inline Bfloat16* as_bfloat16(float* packed) {
  return reinterpret_cast<Bfloat16*>(packed);
}
inline const Bfloat16* as_bfloat16(const float* packed) {
  return reinterpret_cast<const Bfloat16*>(packed);
}

/// An input stored as [.., columns]: its rounded copy if there is one.
inline Operand operand_of(const kernels::ProductInput& x, bool transpose, std::int64_t columns,
                          std::int64_t ld) {
  if (x.bf16)
    return {.transpose = transpose, .bf16 = x.bf16, .ld = kernels::rounded_stride(columns)};
  return {.transpose = transpose, .f32 = x.f32, .ld = ld};
}

/// op(B) from its packed form [n,k]; `stride` as in Operand.
inline Operand packed_operand(const Cuda& cuda, const float* packed, std::int64_t k,
                              std::int64_t stride) {
  Operand b{.transpose = true, .ld = k, .stride = stride};
  if (packs_bfloat16(cuda))
    b.bf16 = as_bfloat16(packed);
  else
    b.f32 = packed;
  return b;
}

}  // namespace nmt::cuda
