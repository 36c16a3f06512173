#pragma once

// Sums over the rows of a matrix, one per column, in one fixed order: gradients of biases, gains
// and shared vectors.

#include "cuda/runtime/launch.h"

namespace nmt::cuda {

/// Rows that one block sums. The number of parts, and so the order of the sum, depends on the
/// number of rows alone.
constexpr std::int64_t rows_of_part = 256;
constexpr unsigned column_threads = 32, row_threads = 8;

template <class Value>
__global__ void column_parts_kernel(std::int64_t rows, std::int64_t width, Value value,
                                    float* parts) {
  NMT_SHARED(sums, float[row_threads][column_threads]);
  const std::int64_t column = std::int64_t{blockIdx.x} * column_threads + threadIdx.x;
  const std::int64_t begin = std::int64_t{blockIdx.y} * rows_of_part;
  const std::int64_t end = begin + rows_of_part < rows ? begin + rows_of_part : rows;
  float sum = 0;
  if (column < width)
    for (std::int64_t r = begin + threadIdx.y; r < end; r += row_threads) sum += value(r, column);
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < width) {
    for (unsigned i = 1; i < row_threads; ++i) sum += sums[i][threadIdx.x];
    parts[blockIdx.y * width + column] = sum;
  }
}

static __global__ void add_parts_kernel(std::int64_t parts, std::int64_t width, const float* part,
                                        float* out) {
  for (std::int64_t column = grid_index(); column < width; column += grid_stride()) {
    float sum = 0;
    for (std::int64_t p = 0; p < parts; ++p) sum += part[p * width + column];
    out[column] += sum;
  }
}

/// out[column] += sum over the parts [parts,width], in their order.
inline void add_parts(const Cuda& cuda, std::int64_t parts, std::int64_t width, const float* part,
                      float* out) {
  launch(add_parts_kernel, blocks_for(cuda, width, 128), 128, 0, cuda, parts, width, part, out);
}

/// out[column] += sum over rows of value(row, column), a __device__ lambda. Uses the workspace.
template <class Value>
void add_columns(const Cuda& cuda, std::int64_t rows, std::int64_t width, Value value, float* out) {
  if (rows <= 0 || width <= 0) return;
  const std::int64_t parts = divide_up(rows, rows_of_part);
  NMT_CHECK(parts <= 65535, "sum over {} rows: at most {} are possible", rows,
            65535 * rows_of_part);
  float* const part = workspace<float>(cuda, parts * width);
  const dim3 grid(static_cast<unsigned>(divide_up(width, column_threads)),
                  static_cast<unsigned>(parts));
  launch(column_parts_kernel<Value>, grid, dim3(column_threads, row_threads), 0, cuda, rows, width,
         value, part);
  add_parts(cuda, parts, width, part, out);
}

}  // namespace nmt::cuda
