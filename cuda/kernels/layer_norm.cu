#include "cuda/kernels/columns.h"
#include "cuda/kernels/reduce.h"
#include "kernels/layer_norm.h"

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

// One block per plane of a row. y may be x: one thread reads and writes an element.
__global__ void layer_norm_kernel(std::int64_t planes, std::int64_t width, const float* x,
                                  const float* gain, const float* bias, float* y, float* normal,
                                  float* rstd) {
  const std::int64_t at = std::int64_t{blockIdx.x} * width,
                     parameters = blockIdx.x % planes * width;
  const float inverse = 1.0f / static_cast<float>(width);
  float sum = 0, squares = 0;
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) sum += x[at + i];
  const float mean = block_sum(sum) * inverse;
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float d = x[at + i] - mean;
    squares += d * d;
  }
  const float scale = 1.0f / sqrtf(block_sum(squares) * inverse + layer_norm_epsilon);
  if (rstd && threadIdx.x == 0) rstd[blockIdx.x] = scale;
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float n = (x[at + i] - mean) * scale;
    if (normal) normal[at + i] = n;
    y[at + i] = n * gain[parameters + i] + (bias ? bias[parameters + i] : 0.0f);
  }
}

// With g = gain dy and n the normalized x: dx = rstd (g - mean(g) - n mean(g n)). dx may be dy.
__global__ void layer_norm_backward_kernel(std::int64_t planes, std::int64_t width, const float* dy,
                                           const float* normal, const float* rstd,
                                           const float* gain, float* dx) {
  const std::int64_t at = std::int64_t{blockIdx.x} * width,
                     parameters = blockIdx.x % planes * width;
  const float inverse = 1.0f / static_cast<float>(width), scale = rstd[blockIdx.x];
  float sum = 0, projected = 0;
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float g = dy[at + i] * gain[parameters + i];
    sum += g;
    projected += g * normal[at + i];
  }
  const float mean = block_sum(sum) * inverse, along = block_sum(projected) * inverse;
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x)
    dx[at + i] = scale * (dy[at + i] * gain[parameters + i] - mean - normal[at + i] * along);
}

}  // namespace

void layer_norm(const Cuda& cuda, std::int64_t rows, std::int64_t planes, std::int64_t width,
                const float* x, const float* gain, const float* bias, float* y, float* normal,
                float* rstd) {
  launch(layer_norm_kernel, static_cast<unsigned>(rows * planes), threads_for(width), 0, cuda,
         planes, width, x, gain, bias, y, normal, rstd);
}

void layer_norm_backward(const Cuda& cuda, std::int64_t rows, std::int64_t planes,
                         std::int64_t width, const float* dy, const float* normal,
                         const float* rstd, const float* gain, float* dx, float* dgain,
                         float* dbias) {
  const std::int64_t stride = planes * width;
  // dx may be dy, so the gradients of the parameters come first.
  add_columns(
      cuda, rows, stride,
      [=] __device__(std::int64_t r, std::int64_t i) {
        return dy[r * stride + i] * normal[r * stride + i];
      },
      dgain);
  if (dbias)
    add_columns(
        cuda, rows, stride,
        [=] __device__(std::int64_t r, std::int64_t i) { return dy[r * stride + i]; }, dbias);
  launch(layer_norm_backward_kernel, static_cast<unsigned>(rows * planes), threads_for(width), 0,
         cuda, planes, width, dy, normal, rstd, gain, dx);
}

}  // namespace nmt::kernels
