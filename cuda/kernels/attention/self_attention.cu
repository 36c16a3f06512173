#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/reduce.h"
#include "kernels/math.h"
#include "kernels/self_attention.h"

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

// The number of keys of a block's query; 0 for a padded query.
__device__ std::int64_t keys_of(const SelfAttention& a) {
  const std::int64_t query = blockIdx.x, t = query % a.steps,
                     length = a.lengths[query / (a.steps * a.heads)];
  return t < length ? length : 0;
}

// One block per query.
__global__ void self_attention_softmax_kernel(SelfAttention a, float scale, float* scores) {
  float* const x = scores + std::int64_t{blockIdx.x} * a.steps;
  const std::int64_t length = keys_of(a);
  float largest = Max::none<float>(), sum = 0;
  for (std::int64_t s = threadIdx.x; s < length; s += blockDim.x)
    largest = Max::join(largest, x[s]);
  largest = block_max(largest);
  for (std::int64_t s = threadIdx.x; s < length; s += blockDim.x)
    sum += x[s] = math::exp(scale * (x[s] - largest));
  const float inverse = 1.0f / block_sum(sum);
  for (std::int64_t s = threadIdx.x; s < a.steps; s += blockDim.x)
    x[s] = s < length ? x[s] * inverse : 0.0f;
}

__global__ void self_attention_softmax_backward_kernel(SelfAttention a, float scale,
                                                       const float* weights, float* gradient) {
  const std::int64_t row = std::int64_t{blockIdx.x} * a.steps, length = keys_of(a);
  float mean = 0;
  for (std::int64_t s = threadIdx.x; s < length; s += blockDim.x)
    mean += weights[row + s] * gradient[row + s];
  mean = block_sum(mean);
  for (std::int64_t s = threadIdx.x; s < a.steps; s += blockDim.x)
    gradient[row + s] = s < length ? scale * weights[row + s] * (gradient[row + s] - mean) : 0.0f;
}

float scale_of(const SelfAttention& a) {
  return 1.0f / std::sqrt(static_cast<float>(a.size));
}

unsigned queries_of(const SelfAttention& a) {
  return static_cast<unsigned>(a.groups() * a.steps);
}

}  // namespace

void self_attention_softmax(const Cuda& cuda, const SelfAttention& a, float* scores) {
  launch(self_attention_softmax_kernel, queries_of(a), threads_for(a.steps), 0, cuda, a,
         scale_of(a), scores);
}

void self_attention_softmax_backward(const Cuda& cuda, const SelfAttention& a, const float* weights,
                                     float* gradient) {
  launch(self_attention_softmax_backward_kernel, queries_of(a), threads_for(a.steps), 0, cuda, a,
         scale_of(a), weights, gradient);
}

void rotate(const Cuda& cuda, const SelfAttention& a, const float* turns, bool back, const float* x,
            float* y) {
  const std::int64_t half = a.size / 2, parts = 3 * a.groups();  // of a step
  const float sign = back ? -1.0f : 1.0f;
  each_of_rows(cuda, a.steps * parts, half, [=] __device__(std::int64_t part, std::int32_t i) {
    const std::int64_t index = part * a.size + i;
    const float u = x[index], v = x[index + half];
    if (part % 3 == 2) {
      y[index] = u;
      y[index + half] = v;
      return;
    }
    const float* const turn = turns + part / parts * a.size;
    y[index] = u * turn[i] - sign * v * turn[half + i];
    y[index + half] = v * turn[i] + sign * u * turn[half + i];
  });
}

}  // namespace nmt::kernels
