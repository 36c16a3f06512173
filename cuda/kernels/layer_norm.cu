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

// Rows that one block takes backward. The order of the sums over rows depends on their number
// alone.
constexpr std::int64_t rows_of_block = 16;

// With g = gain dy and n the normalized x: dx = rstd (g - mean(g) - n mean(g n)). dx may be dy: one
// thread reads and writes an element. A block takes a plane of some rows, and adds dy n and dy over
// them, each column by one thread: in parts [2, blocks along x, planes * width], through shared
// memory where rows fit.
__global__ void layer_norm_backward_kernel(std::int64_t rows, std::int64_t width, const float* dy,
                                           const float* normal, const float* rstd,
                                           const float* gain, float* dx, float* parts,
                                           bool shared) {
  NMT_DYNAMIC_SHARED(sums, float);  // [2, width]
  const std::int64_t planes = gridDim.y, plane = blockIdx.y, parameters = plane * width;
  const std::int64_t begin = std::int64_t{blockIdx.x} * rows_of_block,
                     end = begin + rows_of_block < rows ? begin + rows_of_block : rows;
  const float inverse = 1.0f / static_cast<float>(width);
  float* const part = parts + (std::int64_t{blockIdx.x} * planes + plane) * width;
  const std::int64_t all = std::int64_t{gridDim.x} * planes * width;
  float *const gain_sums = shared ? sums : part, *const bias_sums =
                                                     shared ? sums + width : part + all;
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) gain_sums[i] = bias_sums[i] = 0.0f;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t at = (row * planes + plane) * width;
    float mean[2] = {};  // of g and of g n
    for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
      const float d = dy[at + i], n = normal[at + i], g = d * gain[parameters + i];
      mean[0] += g;
      mean[1] += g * n;
      gain_sums[i] += d * n;
      bias_sums[i] += d;
    }
    block_sums(mean);
    const float scale = rstd[row * planes + plane];
    for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x)
      dx[at + i] = scale * (dy[at + i] * gain[parameters + i] - mean[0] * inverse -
                            normal[at + i] * (mean[1] * inverse));
  }
  for (std::int64_t i = threadIdx.x; shared && i < width; i += blockDim.x) {
    part[i] = gain_sums[i];
    part[all + i] = bias_sums[i];
  }
}

// dgain and dbias from the parts of the blocks; dbias may be null.
__global__ void sum_parts_kernel(std::int64_t blocks, std::int64_t width, const float* parts,
                                 float* dgain, float* dbias) {
  for (std::int64_t i = grid_index(); i < 2 * width; i += grid_stride()) {
    const bool is_gain = i < width;
    float* const out = is_gain ? dgain : dbias;
    if (!out) continue;
    const std::int64_t column = is_gain ? i : i - width;
    const float* const part = parts + (is_gain ? 0 : blocks * width) + column;
    float sum = 0;
#pragma unroll 8  // loads in flight
    for (std::int64_t b = 0; b < blocks; ++b) sum += part[b * width];
    out[column] += sum;
  }
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
  if (rows <= 0 || width <= 0) return;
  const std::int64_t blocks = divide_up(rows, rows_of_block), stride = planes * width;
  float* const parts = workspace<float>(cuda, 2 * blocks * stride);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(planes));
  const auto bytes = static_cast<std::size_t>(2 * width) * sizeof(float);
  const bool shared = bytes <= 48 * 1024;
  launch(layer_norm_backward_kernel, grid, threads_for(width), shared ? bytes : 0, cuda, rows,
         width, dy, normal, rstd, gain, dx, parts, shared);
  launch(sum_parts_kernel, blocks_for(cuda, 2 * stride, 128), 128, 0, cuda, blocks, stride, parts,
         dgain, dbias);
}

}  // namespace nmt::kernels
