#pragma once

#include "kernels/backend.h"

#include <cstdint>

namespace nmt::cuda {

// Padded sentences as cuDNN takes and leaves them. [T,B,W] tensors; a sentence has `lengths`[b]
// steps, all T where lengths are null.

struct Sentences {
  std::int64_t steps = 0, batch = 0;
  const std::int32_t* lengths = nullptr;  ///< [B], on the device
};

/// to[t,b] = from[length - 1 - t, b]; behind a sentence's end `fill`[b] [B,W], or zeros where it is
/// null.
void turn(const Cuda& cuda, const Sentences& sentences, std::int64_t width, const float* from,
          const float* fill, float* to);
/// Behind a sentence's end: its last step's value, or zeros.
void carry_last(const Cuda& cuda, const Sentences& sentences, std::int64_t width, float* x);
void clear_padding(const Cuda& cuda, const Sentences& sentences, std::int64_t width, float* x);
/// What carry_last() is backwards: the last step's gradient gets those behind it.
void gather_padding(const Cuda& cuda, const Sentences& sentences, std::int64_t width, float* dx);
/// What `fill` of turn() is backwards: dfill[b] += the gradients behind a sentence's end.
void add_padding(const Cuda& cuda, const Sentences& sentences, std::int64_t width, const float* dx,
                 float* dfill);

/// out [width,rows] = x [rows,width] transposed, or that added to out; rows of x and out stand so
/// far apart.
void copy_transposed(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* x,
                     std::int64_t x_stride, float* out, std::int64_t out_stride);
void add_transposed(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* x,
                    std::int64_t x_stride, float* out, std::int64_t out_stride);

}  // namespace nmt::cuda
