#pragma once

#include "cuda/kernels/assign.h"
#include "cuda/kernels/elementwise.h"

namespace nmt::cuda {

constexpr unsigned tile_width = 32, tile_rows = 8;

/// out[j,i] = x[i,j], in float32 or bfloat16, through a tile of shared memory, so that both
/// matrices are accessed along their rows. The odd width of the tile puts its columns in different
/// banks.
template <class T>
__global__ void transpose_kernel(std::int64_t rows, std::int64_t width, const float* x,
                                 std::int64_t x_stride, T* out, std::int64_t out_stride) {
  NMT_SHARED(tile, float[tile_width][tile_width + 1]);
  const std::int64_t row = std::int64_t{blockIdx.y} * tile_width,
                     column = std::int64_t{blockIdx.x} * tile_width;
  for (unsigned i = threadIdx.y; i < tile_width; i += tile_rows)
    if (row + i < rows && column + threadIdx.x < width)
      tile[i][threadIdx.x] = x[(row + i) * x_stride + column + threadIdx.x];
  __syncthreads();
  for (unsigned i = threadIdx.y; i < tile_width; i += tile_rows)
    if (column + i < width && row + threadIdx.x < rows)
      assign(out[(column + i) * out_stride + row + threadIdx.x], tile[threadIdx.x][i]);
}

/// out [width,rows] = x [rows,width] transposed.
template <class T>
void transpose(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* x,
               std::int64_t x_stride, T* out, std::int64_t out_stride) {
  // The grid's y axis has the lower limit.
  constexpr std::int64_t max_rows = std::int64_t{65535} * tile_width;
  for (std::int64_t row = 0; row < rows; row += max_rows) {
    const std::int64_t count = std::min(max_rows, rows - row);
    const dim3 grid(static_cast<unsigned>(divide_up(width, tile_width)),
                    static_cast<unsigned>(divide_up(count, tile_width)));
    launch(transpose_kernel<T>, grid, dim3(tile_width, tile_rows), 0, cuda, count, width,
           x + row * x_stride, x_stride, out + row, out_stride);
  }
}

/// Copies x [rows,width] between matrices with different row strides.
template <class T>
void copy_matrix(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* x,
                 std::int64_t x_stride, T* out, std::int64_t out_stride) {
  each_of_rows(cuda, rows, width, [=] __device__(std::int64_t row, std::int32_t column) {
    assign(out[row * out_stride + column], x[row * x_stride + column]);
  });
}

}  // namespace nmt::cuda
