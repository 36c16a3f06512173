#include "cuda/kernels/columns.h"
#include "cuda/kernels/elementwise.h"
#include "kernels/recurrent/convolution.h"

namespace nmt::kernels {

using namespace nmt::cuda;

void convolution_forward(const Cuda& cuda, const Convolution& a, float* y) {
  const std::int64_t rows = a.steps * a.batch;
  each_of_rows(cuda, rows, a.width, [=] __device__(std::int64_t row, std::int32_t j) {
    float sum = a.bias[j];
    for (std::int64_t k = 0; k < a.taps; ++k)
      if (const float* from = a.input(row / a.batch, row % a.batch, k))
        sum += a.weight[k * a.width + j] * from[j];
    y[row * a.width + j] = sum;
  });
}

void convolution_backward(const Cuda& cuda, const Convolution& a, const float* dy, float* dx,
                          float* dweight, float* dbias) {
  const std::int64_t rows = a.steps * a.batch;
  if (dx)
    each_of_rows(cuda, rows, a.width, [=] __device__(std::int64_t row, std::int32_t j) {
      const std::int64_t i = row * a.width + j;
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
  const std::int64_t taps = a.batch * (a.taps - 1);
  each_of_rows(cuda, taps, a.width, [=] __device__(std::int64_t tap, std::int32_t j) {
    const std::int64_t b = tap / (a.taps - 1), k = tap % (a.taps - 1) + 1;
    const float* from = a.input(a.steps, b, k);
    last[tap * a.width + j] = from ? from[j] : 0.0f;
  });
}

}  // namespace nmt::kernels
