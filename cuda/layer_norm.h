#pragma once

#include "cuda/reduce.h"

namespace nmt::cuda {

/// The gradient of layer normalisation for one plane of a row, by a block. With g = gain dy and n the normalised x:
/// dx = rstd (g - mean(g) - n mean(g n)). dx may be dy; first(i) is called before dx[i] is written.
template <class First>
__device__ __forceinline__ void layer_norm_backward_plane(std::int64_t width, const float* dy, const float* normal,
                                                          float rstd, const float* gain, float* dx, First first) {
  float sum = 0, projected = 0;
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float g = dy[i] * gain[i];
    sum += g;
    projected += g * normal[i];
  }
  const float inverse = 1.0f / static_cast<float>(width);
  const float mean = block_sum(sum) * inverse, along = block_sum(projected) * inverse;
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    first(i);
    dx[i] = rstd * (dy[i] * gain[i] - mean - normal[i] * along);
  }
}

}  // namespace nmt::cuda
