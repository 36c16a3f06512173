#pragma once

// Parts of steps that a block computes for a whole row. A thread always has the same columns, so it
// reads what it wrote without a barrier.

#include "cuda/kernels/recurrent/unit_step.h"
#include "cuda/kernels/reduce.h"
#include "kernels/layer_norm.h"

namespace nmt::cuda {

/// Turns a product into the unit's input: adds the bias and normalizes the planes.
template <int planes>
__device__ __forceinline__ void complete(float* y, const float* bias, const RowNorm& norm,
                                         std::int64_t row, std::int64_t h) {
  if constexpr (planes > 0) {
    if (!norm.gain && !bias) return;
    const float inverse = 1.0f / static_cast<float>(h);
    float* const at = y + row * planes * h;
    float mean[planes] = {}, scale[planes] = {};
    for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x)
#pragma unroll
      for (int p = 0; p < planes; ++p) {
        const std::int64_t i = p * h + column;
        if (bias) at[i] += bias[i];
        mean[p] += at[i];
      }
    if (!norm.gain) return;
    block_sums(mean);
#pragma unroll
    for (int p = 0; p < planes; ++p) mean[p] *= inverse;
    for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x)
#pragma unroll
      for (int p = 0; p < planes; ++p) {
        const float d = at[p * h + column] - mean[p];
        scale[p] += d * d;
      }
    block_sums(scale);
#pragma unroll
    for (int p = 0; p < planes; ++p) {
      scale[p] = 1.0f / sqrtf(scale[p] * inverse + kernels::layer_norm_epsilon);
      if (norm.rstd && threadIdx.x == 0) norm.rstd[row * planes + p] = scale[p];
    }
    for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x)
#pragma unroll
      for (int p = 0; p < planes; ++p) {
        const std::int64_t i = p * h + column;
        const float n = (at[i] - mean[p]) * scale[p];
        if (norm.normal) norm.normal[row * planes * h + i] = n;
        at[i] = n * norm.gain[i] + norm.norm_bias[i];
      }
  }
}

/// Turns the gradient of the unit's input into that of the product (equation: layer_norm.cu).
template <int planes>
__device__ __forceinline__ void complete_backward(float* dy, const RowNorm& norm, std::int64_t row,
                                                  std::int64_t h) {
  if constexpr (planes > 0) {
    if (!norm.gain) return;
    const float inverse = 1.0f / static_cast<float>(h);
    float* const at = dy + row * planes * h;
    const float* const normal = norm.normal + row * planes * h;
    float *const gain_sums = norm.gain_sums + row * norm.sums_stride, *const norm_bias_sums =
                                                                          norm.norm_bias_sums +
                                                                          row * norm.sums_stride;
    float mean[planes] = {}, along[planes] = {};
    for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x)
#pragma unroll
      for (int p = 0; p < planes; ++p) {
        const std::int64_t i = p * h + column;
        const float g = at[i] * norm.gain[i];
        mean[p] += g;
        along[p] += g * normal[i];
      }
    block_sums(mean);
    block_sums(along);
    for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x)
#pragma unroll
      for (int p = 0; p < planes; ++p) {
        const std::int64_t i = p * h + column;
        const float d = at[i];
        gain_sums[i] += d * normal[i];
        norm_bias_sums[i] += d;
        at[i] = norm.rstd[row * planes + p] *
                (d * norm.gain[i] - mean[p] * inverse - normal[i] * along[p] * inverse);
      }
  }
}

/// Rounds a row that this block has stored.
template <int planes>
__device__ __forceinline__ void round_row(const float* from, std::int64_t row, std::int64_t h,
                                          Bfloat16* to) {
  for (std::int64_t column = threadIdx.x; to && column < h; column += blockDim.x)
    round_planes<planes>(from, row, column, h, to);
}

/// The most threads of a block for a row. Kernels that have a block per row are bound to it, since
/// for devices newer than Hopper the compiler would give them more registers than such a block can
/// have.
constexpr unsigned max_row_block = 512;
/// Threads of a block for a row of H channels.
inline unsigned row_block(std::int64_t h) {
  return threads_for(h, max_row_block);
}

}  // namespace nmt::cuda
