#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/transpose.h"
#include "cuda/libraries/cudnn_order.h"
#include "kernels/pointwise.h"

namespace nmt::cuda {
namespace {

__device__ __forceinline__ std::int64_t length_of(const Sentences& s, std::int64_t b) {
  return s.lengths ? s.lengths[b] : s.steps;
}

}  // namespace

void turn(const Cuda& cuda, const Sentences& s, std::int64_t width, const float* from,
          const float* fill, float* to) {
  const std::int64_t row = s.batch * width;
  each(cuda, s.steps * row, [=] __device__(std::int64_t i) {
    const std::int64_t t = i / row, column = i % row, length = length_of(s, column / width);
    to[i] = t < length ? from[(length - 1 - t) * row + column] : fill ? fill[column] : 0.0f;
  });
}

void carry_last(const Cuda& cuda, const Sentences& s, std::int64_t width, float* x) {
  const std::int64_t row = s.batch * width;
  each(cuda, row, [=] __device__(std::int64_t column) {
    const std::int64_t length = length_of(s, column / width);
    const float last = x[(length - 1) * row + column];
    for (std::int64_t t = length; t < s.steps; ++t) x[t * row + column] = last;
  });
}

void clear_padding(const Cuda& cuda, const Sentences& s, std::int64_t width, float* x) {
  const std::int64_t row = s.batch * width;
  each(cuda, row, [=] __device__(std::int64_t column) {
    for (std::int64_t t = length_of(s, column / width); t < s.steps; ++t)
      x[t * row + column] = 0.0f;
  });
}

void gather_padding(const Cuda& cuda, const Sentences& s, std::int64_t width, float* dx) {
  const std::int64_t row = s.batch * width;
  each(cuda, row, [=] __device__(std::int64_t column) {
    const std::int64_t length = length_of(s, column / width);
    float sum = dx[(length - 1) * row + column];
    for (std::int64_t t = length; t < s.steps; ++t) {
      sum += dx[t * row + column];
      dx[t * row + column] = 0.0f;
    }
    dx[(length - 1) * row + column] = sum;
  });
}

void add_padding(const Cuda& cuda, const Sentences& s, std::int64_t width, const float* dx,
                 float* dfill) {
  const std::int64_t row = s.batch * width;
  each(cuda, row, [=] __device__(std::int64_t column) {
    float sum = dfill[column];
    for (std::int64_t t = length_of(s, column / width); t < s.steps; ++t)
      sum += dx[t * row + column];
    dfill[column] = sum;
  });
}

void copy_transposed(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* x,
                     std::int64_t x_stride, float* out, std::int64_t out_stride) {
  transpose(cuda, rows, width, x, x_stride, out, out_stride);
}

void add_transposed(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* x,
                    std::int64_t x_stride, float* out, std::int64_t out_stride) {
  float* const turned = workspace<float>(cuda, rows * width);
  transpose(cuda, rows, width, x, x_stride, turned, rows);
  kernels::copy_columns(cuda, width, rows, turned, rows, out, out_stride, true);
}

}  // namespace nmt::cuda
