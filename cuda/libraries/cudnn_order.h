#pragma once

#include "kernels/handles.h"

#include <cstdint>

namespace nmt::cuda {

// Conversions of padded sentences from and to cuDNN's order. Tensors are [T,B,W]; sentence b has
// lengths[b] steps, or T where lengths are null.

struct Sentences {
  std::int64_t steps = 0, batch = 0;
  const std::int32_t* lengths = nullptr;  ///< [B], on the device
};

/// Reverses each sentence: to[t,b] = from[length - 1 - t, b]; the padding becomes fill[b] of [B,W],
/// or zeros where fill is null.
void turn(const Cuda& cuda, const Sentences& sentences, std::int64_t width, const float* from,
          const float* fill, float* to);
/// Fills the padding with the value of the sentence's last step, or with zeros.
void carry_last(const Cuda& cuda, const Sentences& sentences, std::int64_t width, float* x);
void clear_padding(const Cuda& cuda, const Sentences& sentences, std::int64_t width, float* x);
/// The gradient of carry_last(): adds the padding's gradients to that of the last step.
void gather_padding(const Cuda& cuda, const Sentences& sentences, std::int64_t width, float* dx);
/// The gradient of turn()'s fill: dfill[b] += the gradients of the padding.
void add_padding(const Cuda& cuda, const Sentences& sentences, std::int64_t width, const float* dx,
                 float* dfill);

/// out [width,rows] = x [rows,width] transposed, or added to out; the arguments behind x and out
/// are their row strides.
void copy_transposed(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* x,
                     std::int64_t x_stride, float* out, std::int64_t out_stride);
void add_transposed(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* x,
                    std::int64_t x_stride, float* out, std::int64_t out_stride);

}  // namespace nmt::cuda
