#pragma once

#include "kernels/self_attention.h"

namespace nmt::kernels {

/// Self-attention of inference in int8 (quantized_head.h): x [T,B,heads,3,size] -> the heads'
/// weighted values [T,B,heads*size], 0 at padding.
void quantized_self_attention(const Cpu&, const SelfAttention& shape, const float* x, float* out);

}  // namespace nmt::kernels
