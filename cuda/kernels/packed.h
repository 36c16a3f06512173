#pragma once

#include "cuda/libraries/blas.h"
#include "cuda/runtime/state.h"

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
