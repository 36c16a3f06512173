#include "cuda/kernels/assign.h"
#include "cuda/kernels/columns.h"
#include "cuda/kernels/reduce.h"
#include "kernels/layer_norm.h"
#include "kernels/products/rounded.h"

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

// One block per plane of a row. y may be x: one thread reads and writes an element.
__global__ void layer_norm_kernel(std::int64_t planes, std::int64_t width, const float* x,
                                  const float* gain, const float* bias, float* y,
                                  float* statistics) {
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
  if (statistics && threadIdx.x == 0) {
    statistics[2 * std::int64_t{blockIdx.x}] = mean;
    statistics[2 * std::int64_t{blockIdx.x} + 1] = scale;
  }
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float n = (x[at + i] - mean) * scale;
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
template <class T>
__global__ void layer_norm_backward_kernel(std::int64_t rows, std::int64_t width, const float* dy,
                                           const float* x, const float* statistics,
                                           const float* gain, T* dx, std::int64_t dx_stride,
                                           float* parts, bool shared) {
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
    const std::int64_t number = row * planes + plane, at = number * width;
    const float x_mean = statistics[2 * number], scale = statistics[2 * number + 1];
    float sum[2] = {};  // of g and of g n
    for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
      const float d = dy[at + i], n = (x[at + i] - x_mean) * scale, g = d * gain[parameters + i];
      sum[0] += g;
      sum[1] += g * n;
      gain_sums[i] += d * n;
      bias_sums[i] += d;
    }
    block_sums(sum);
    T* const to = dx + row * dx_stride + parameters;
    for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x)
      assign(to[i], scale * (dy[at + i] * gain[parameters + i] - sum[0] * inverse -
                             (x[at + i] - x_mean) * scale * (sum[1] * inverse)));
  }
  for (std::int64_t i = threadIdx.x; shared && i < width; i += blockDim.x) {
    part[i] = gain_sums[i];
    part[all + i] = bias_sums[i];
  }
}

// dgain and dbias, of `width` columns each, from the parts of the blocks; dbias may be null.
__global__ void sum_parts_kernel(std::int64_t blocks, std::int64_t width, const float* parts,
                                 float* dgain, float* dbias) {
  NMT_SHARED(sums, float[row_threads][column_threads]);
  const std::int64_t column = std::int64_t{blockIdx.x} * column_threads + threadIdx.x;
  const float* const part = parts + blockIdx.y * blocks * width + column;
  float sum = 0;
  if (column < width) {
#pragma unroll 8  // loads in flight
    for (std::int64_t b = threadIdx.y; b < blocks; b += row_threads) sum += part[b * width];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= width) return;
  for (unsigned i = 1; i < row_threads; ++i) sum += sums[i][threadIdx.x];
  (blockIdx.y == 0 ? dgain : dbias)[column] += sum;
}

}  // namespace

void layer_norm(const Cuda& cuda, std::int64_t rows, std::int64_t planes, std::int64_t width,
                const float* x, const float* gain, const float* bias, float* y, float* statistics) {
  launch(layer_norm_kernel, static_cast<unsigned>(rows * planes), threads_for(width), 0, cuda,
         planes, width, x, gain, bias, y, statistics);
}

namespace {

template <class T>
void backward(const Cuda& cuda, std::int64_t rows, std::int64_t planes, std::int64_t width,
              const float* dy, const float* x, const float* statistics, const float* gain, T* dx,
              std::int64_t dx_stride, float* dgain, float* dbias) {
  if (rows <= 0 || width <= 0) return;
  const std::int64_t blocks = divide_up(rows, rows_of_block), stride = planes * width;
  float* const parts = workspace<float>(cuda, 2 * blocks * stride);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(planes));
  const auto bytes = static_cast<std::size_t>(2 * width) * sizeof(float);
  const bool shared = bytes <= 40 * 1024;  // of 48 KB, with that of block_sums()
  launch(layer_norm_backward_kernel<T>, grid, threads_for(width), shared ? bytes : 0, cuda, rows,
         width, dy, x, statistics, gain, dx, dx_stride, parts, shared);
  const dim3 columns(static_cast<unsigned>(divide_up(stride, column_threads)), dbias ? 2 : 1);
  launch(sum_parts_kernel, columns, dim3(column_threads, row_threads), 0, cuda, blocks, stride,
         parts, dgain, dbias);
}

}  // namespace

void layer_norm_backward(const Cuda& cuda, std::int64_t rows, std::int64_t planes,
                         std::int64_t width, const float* dy, const float* x,
                         const float* statistics, const float* gain, float* dx, float* dgain,
                         float* dbias) {
  backward(cuda, rows, planes, width, dy, x, statistics, gain, dx, planes * width, dgain, dbias);
}
void layer_norm_backward_rounded(const Cuda& cuda, std::int64_t rows, std::int64_t planes,
                                 std::int64_t width, const float* dy, const float* x,
                                 const float* statistics, const float* gain, Bfloat16* dx,
                                 float* dgain, float* dbias) {
  backward(cuda, rows, planes, width, dy, x, statistics, gain, dx, rounded_stride(planes * width),
           dgain, dbias);
}

}  // namespace nmt::kernels
