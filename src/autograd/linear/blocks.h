#pragma once

// Block-diagonal weights [K,k,P*n] as the ops of layers and cells use them.

#include "autograd/ops/linear.h"
#include "kernels/products/gemm_batched.h"

namespace nmt::ops {

/// The block structure of a weight [K,k,P*n].
inline kernels::BlockDiagonal blocks_of(const Parameter& weight, int planes) {
  return {weight.shape[0], planes, weight.shape[1], weight.shape[2] / planes, weight.shape[2]};
}
/// Packs the blocks at `values`, or their transposes.
Tensor pack_blocks(const Context& context, const kernels::BlockDiagonal& blocks,
                   const float* values, bool transpose);

}  // namespace nmt::ops
