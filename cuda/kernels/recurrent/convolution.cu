#include "cuda/kernels/columns.h"
#include "cuda/kernels/elementwise.h"
#include "kernels/recurrent/convolution.h"

namespace nmt::kernels {

using namespace nmt::cuda;

void convolution_forward(const Cuda& cuda, const Convolution& a, float* y) {
  each(cuda, a.steps * a.batch * a.width, [=] __device__(std::int64_t i) {
    const std::int64_t row = i / a.width, j = i % a.width;
    float sum = a.bias[j];
    for (std::int64_t k = 0; k < a.taps; ++k)
      if (const float* from = a.input(row / a.batch, row % a.batch, k))
        sum += a.weight[k * a.width + j] * from[j];
    y[i] = sum;
  });
}

void convolution_backward(const Cuda& cuda, const Convolution& a, const float* dy, float* dx,
                          float* dweight, float* dbias) {
  const std::int64_t rows = a.steps * a.batch;
  if (dx)
    each(cuda, rows * a.width, [=] __device__(std::int64_t i) {
      const std::int64_t row = i / a.width, j = i % a.width;
      float sum = dx[i];
      for (std::int64_t k = 0; k < a.taps; ++k)
        if (const float* from = a.output(dy, row / a.batch, row % a.batch, k))
          sum += a.weight[k * a.width + j] * from[j];
      dx[i] = sum;
    });
  add_columns(
      cuda, rows, a.taps * a.width,
      [=] __device__(std::int64_t row, std::int64_t column) {
        const std::int64_t j = column % a.width;
        const float* from = a.input(row / a.batch, row % a.batch, column / a.width);
        return from ? dy[row * a.width + j] * from[j] : 0.0f;
      },
      dweight);
  add_columns(
      cuda, rows, a.width,
      [=] __device__(std::int64_t row, std::int64_t j) { return dy[row * a.width + j]; }, dbias);
}

void convolution_last(const Cuda& cuda, const Convolution& a, float* last) {
  each(cuda, a.batch * (a.taps - 1) * a.width, [=] __device__(std::int64_t i) {
    const std::int64_t tap = i / a.width, b = tap / (a.taps - 1), k = tap % (a.taps - 1) + 1;
    const float* from = a.input(a.steps, b, k);
    last[i] = from ? from[i % a.width] : 0.0f;
  });
}

}  // namespace nmt::kernels
