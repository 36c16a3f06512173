#pragma once

// Layer normalization of rows by a block or by a warp, and its backward pass: shared by
// layer_norm.cu and residual_norm.cu.

#include "cuda/kernels/assign.h"
#include "cuda/kernels/columns.h"
#include "cuda/kernels/reduce.h"
#include "cuda/kernels/vector.h"
#include "kernels/layer_norm.h"

#include <type_traits>

namespace nmt::cuda {

/// Where kernels read and write n elements at a time, a thread has columns n threadIdx.x, n
/// threadIdx.x + 1, ... of a row, and the same ones after n blockDim.x columns.
template <int n>
__device__ __forceinline__ std::int64_t first_column() {
  return std::int64_t{n} * threadIdx.x;
}
template <int n>
__device__ __forceinline__ std::int64_t next_columns() {
  return std::int64_t{n} * blockDim.x;
}

/// The mean and 1/sigma of a row of `width` elements; `statistics` may be null.
template <int n, class X>
__device__ __forceinline__ void row_statistics(const X* x, std::int64_t width, float sum,
                                               float* statistics, float& mean, float& scale) {
  const float inverse = 1.0f / static_cast<float>(width);
  mean = block_sum(sum) * inverse;
  float squares = 0;
  for (std::int64_t i = first_column<n>(); i < width; i += next_columns<n>()) {
    const Floats<n> value = read_all<n>(x + i);
#pragma unroll
    for (int e = 0; e < n; ++e) {
      const float d = value[e] - mean;
      squares += d * d;
    }
  }
  scale = 1.0f / sqrtf(block_sum(squares) * inverse + kernels::layer_norm_epsilon);
  if (statistics && threadIdx.x == 0) {
    statistics[0] = mean;
    statistics[1] = scale;
  }
}

/// Normalizes a row: y, which may be x, and the same rounded where `rounded` is given.
template <int n, class X>
__device__ __forceinline__ void write_normal(const X* x, std::int64_t width, float mean,
                                             float scale, const float* gain, const float* bias,
                                             X* y, kernels::Bfloat16* rounded) {
  for (std::int64_t i = first_column<n>(); i < width; i += next_columns<n>()) {
    const Floats<n> value = read_all<n>(x + i), factor = load<n>(gain + i);
    Floats<n> offset{}, normal;
    if (bias) offset = load<n>(bias + i);
#pragma unroll
    for (int e = 0; e < n; ++e) normal[e] = (value[e] - mean) * scale * factor[e] + offset[e];
    assign_all<n>(y + i, normal);
    if (rounded) assign_all<n>(rounded + i, normal);
  }
}

/// A row that fits into the registers of a warp: lane l has the columns n l, n l + 1, ... of each
/// of `tiles` parts of 32 n columns. There is no barrier, and all loads of the row are in flight at
/// once. A bounds check would prevent that: `whole` means that no part needs one.
template <int n, int tiles, bool whole>
struct WarpRow {
  Floats<n> value[tiles];

  /// body(column, values, tile) for the columns of this lane.
  template <class Body>
  __device__ __forceinline__ void each(std::int64_t width, const Body& body) {
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      const std::int64_t column = n * (threadIdx.x % warp_size + tile * std::int64_t{warp_size});
      if (whole || column < width) body(column, value[tile], tile);
    }
  }

  /// The mean and 1/sigma of the values; `statistics` may be null.
  __device__ __forceinline__ void find_statistics(std::int64_t width, float* statistics,
                                                  float& mean, float& scale) {
    const float inverse = 1.0f / static_cast<float>(width);
    float sum = 0, squares = 0;
    each(width, [&](std::int64_t, const Floats<n>& x, int) {
#pragma unroll
      for (int e = 0; e < n; ++e) sum += x[e];
    });
    mean = warp_sum(sum) * inverse;
    each(width, [&](std::int64_t, const Floats<n>& x, int) {
#pragma unroll
      for (int e = 0; e < n; ++e) squares += (x[e] - mean) * (x[e] - mean);
    });
    scale = 1.0f / sqrtf(warp_sum(squares) * inverse + kernels::layer_norm_epsilon);
    if (statistics && threadIdx.x % warp_size == 0) {
      statistics[0] = mean;
      statistics[1] = scale;
    }
  }

  /// Normalizes the values: y, and the same rounded where `rounded` is given.
  template <class X>
  __device__ __forceinline__ void write_normal(std::int64_t width, float mean, float scale,
                                               const float* gain, const float* bias, X* y,
                                               kernels::Bfloat16* rounded) {
    each(width, [&](std::int64_t i, Floats<n>& x, int) {
      const Floats<n> factor = load_constant<n>(gain + i);
      Floats<n> offset{};
      if (bias) offset = load_constant<n>(bias + i);
#pragma unroll
      for (int e = 0; e < n; ++e) x[e] = (x[e] - mean) * scale * factor[e] + offset[e];
    });
    each(width, [&](std::int64_t i, const Floats<n>& normal, int) {
      assign_all<n>(y + i, normal);
      if (rounded) assign_all<n>(rounded + i, normal);
    });
  }
};

/// Rows of a block, one per warp.
constexpr unsigned warp_rows = 4;

__device__ __forceinline__ std::int64_t row_of_warp() {
  return std::int64_t{blockIdx.x} * warp_rows + threadIdx.x / warp_size;
}

/// start(std::integral_constant<int, n>) with four elements at a time where rows allow it, else
/// with one.
template <class Start, class... Pointers>
void by_width(Start start, std::int64_t width, const Pointers*... pointers) {
  if (by_fours(width, pointers...))
    start(std::integral_constant<int, 4>());
  else
    start(std::integral_constant<int, 1>());
}

/// start(tiles, whole), constants, where rows of `width` columns, four at a time, fit into the
/// registers of a warp.
template <class Start>
bool by_warps(std::int64_t width, Start start) {
  constexpr std::int64_t tile = 4 * warp_size;
  const auto fits = [&](auto tiles) {
    if (width > tiles * tile) return false;
    if (width == tiles * tile)
      start(tiles, std::true_type());
    else
      start(tiles, std::false_type());
    return true;
  };
  return fits(std::integral_constant<int, 2>()) || fits(std::integral_constant<int, 4>()) ||
         fits(std::integral_constant<int, 8>());
}

/// Rows of a block in the backward pass. The order of the sums over rows depends on the number of
/// rows alone.
constexpr std::int64_t rows_of_block = 16;

/// With g = gain dy and n the normalized x: dx = rstd (g - mean(g) - n mean(g n)). A block takes
/// one plane of some rows and sums dy n and dy over these rows, each column in one thread. The sums
/// go to parts [2, blocks along x, planes * width], and are accumulated in shared memory if a row
/// fits. `to` writes the gradient: output = to.row(row), output.put(column, dx, before). If
/// To::adds, `before` is output.before(column), else zeros.
template <int n, class X, class To>
__global__ void layer_norm_backward_kernel(std::int64_t rows, std::int64_t width, const X* dy,
                                           const X* x, const float* statistics, const float* gain,
                                           To to, float* parts, bool shared) {
  NMT_DYNAMIC_SHARED(sums, float);  // [2, width]
  const std::int64_t planes = gridDim.y, plane = blockIdx.y, parameters = plane * width;
  const std::int64_t begin = std::int64_t{blockIdx.x} * rows_of_block,
                     end = begin + rows_of_block < rows ? begin + rows_of_block : rows;
  const float inverse = 1.0f / static_cast<float>(width);
  float* const part = parts + (std::int64_t{blockIdx.x} * planes + plane) * width;
  const std::int64_t all = std::int64_t{gridDim.x} * planes * width;
  float *const gain_sums = shared ? sums : part, *const bias_sums =
                                                     shared ? sums + width : part + all;
  for (std::int64_t i = first_column<n>(); i < width; i += next_columns<n>()) {
    store<n>(gain_sums + i, Floats<n>{});
    store<n>(bias_sums + i, Floats<n>{});
  }
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t number = row * planes + plane, row_offset = number * width;
    const float x_mean = statistics[2 * number], scale = statistics[2 * number + 1];
    const typename To::Row output = to.row(row);
    float sum[2] = {};  // of g and of g n
    for (std::int64_t i = first_column<n>(); i < width; i += next_columns<n>()) {
      const Floats<n> d = read_all<n>(dy + row_offset + i), value = read_all<n>(x + row_offset + i),
                      factor = load<n>(gain + parameters + i);
      Floats<n> gains = load<n>(gain_sums + i), biases = load<n>(bias_sums + i);
#pragma unroll
      for (int e = 0; e < n; ++e) {
        const float normal = (value[e] - x_mean) * scale, g = d[e] * factor[e];
        sum[0] += g;
        sum[1] += g * normal;
        gains[e] += d[e] * normal;
        biases[e] += d[e];
      }
      store<n>(gain_sums + i, gains);
      store<n>(bias_sums + i, biases);
    }
    block_sums(sum);
    for (std::int64_t i = first_column<n>(); i < width; i += next_columns<n>()) {
      const Floats<n> d = read_all<n>(dy + row_offset + i), value = read_all<n>(x + row_offset + i),
                      factor = load<n>(gain + parameters + i);
      Floats<n> dx;
#pragma unroll
      for (int e = 0; e < n; ++e)
        dx[e] = scale * (d[e] * factor[e] - sum[0] * inverse -
                         (value[e] - x_mean) * scale * (sum[1] * inverse));
      Floats<n> before{};
      if constexpr (To::adds) before = output.template before<n>(parameters + i);
      output.template put<n>(parameters + i, dx, before);
    }
  }
  for (std::int64_t i = first_column<n>(); shared && i < width; i += next_columns<n>()) {
    store<n>(part + i, load<n>(gain_sums + i));
    store<n>(part + all + i, load<n>(bias_sums + i));
  }
}

/// The same where each warp of a block processes rows, one after the other. A lane accumulates the
/// sums of its columns in registers; then the warps add their sums to shared memory in turn. A row
/// is read twice, the second time from the L1 cache.
constexpr unsigned backward_warps = 4;

template <int n, int tiles, bool whole, class X, class To>
__global__ void __launch_bounds__(backward_warps* warp_size, sizeof(X) == 2 ? 3 : 2)
    warp_backward_kernel(std::int64_t rows, std::int64_t width, const X* dy, const X* x,
                         const float* statistics, const float* gain, To to, float* parts) {
  NMT_DYNAMIC_SHARED(sums, float);  // [2, width]
  const std::int64_t planes = gridDim.y, parameters = blockIdx.y * width;
  const std::int64_t begin = std::int64_t{blockIdx.x} * rows_of_block,
                     end = begin + rows_of_block < rows ? begin + rows_of_block : rows;
  const unsigned warp = threadIdx.x / warp_size;
  const float inverse = 1.0f / static_cast<float>(width);
  // Tiles whose loads are in flight at once; more would spill registers.
  constexpr int held = tiles < 4 ? tiles : 4;
  WarpRow<n, tiles, whole> gains{}, biases{};
  for (std::int64_t row = begin + warp; row < end; row += backward_warps) {
    const std::int64_t number = row * planes + blockIdx.y, row_offset = number * width;
    const float mean = statistics[2 * number], scale = statistics[2 * number + 1];
    const typename To::Row output = to.row(row);
    float sum[2] = {};  // of g and of g n
    gains.each(width, [&](std::int64_t i, Floats<n>& dgain, int tile) {
      const Floats<n> d = read_all<n>(dy + row_offset + i), value = read_all<n>(x + row_offset + i),
                      factor = load_constant<n>(gain + parameters + i);
#pragma unroll
      for (int e = 0; e < n; ++e) {
        const float normal = (value[e] - mean) * scale, g = d[e] * factor[e];
        sum[0] += g;
        sum[1] += g * normal;
        dgain[e] += d[e] * normal;
        biases.value[tile][e] += d[e];
      }
      if (tile % held == held - 1) keep_order();
    });
    const float g_mean = warp_sum(sum[0]) * inverse, along = warp_sum(sum[1]) * inverse;
#pragma unroll
    for (int first = 0; first < tiles; first += held) {
      WarpRow<n, held, whole> out, before{};
      const std::int64_t skipped = std::int64_t{n} * warp_size * first;
      out.each(width - skipped, [&](std::int64_t column, Floats<n>& dx, int) {
        const std::int64_t i = skipped + column;
        const Floats<n> d = read_all<n>(dy + row_offset + i),
                        value = read_all<n>(x + row_offset + i),
                        factor = load_constant<n>(gain + parameters + i);
#pragma unroll
        for (int e = 0; e < n; ++e)
          dx[e] = scale * (d[e] * factor[e] - g_mean - (value[e] - mean) * scale * along);
      });
      if constexpr (To::adds)
        before.each(width - skipped, [&](std::int64_t column, Floats<n>& added, int) {
          added = output.template before<n>(parameters + skipped + column);
        });
      out.each(width - skipped, [&](std::int64_t column, const Floats<n>& dx, int tile) {
        output.template put<n>(parameters + skipped + column, dx, before.value[tile]);
      });
      keep_order();
    }
  }
  for (unsigned turn = 0; turn < backward_warps; ++turn) {
    if (turn == warp)
      gains.each(width, [&](std::int64_t i, Floats<n>& dgain, int tile) {
        Floats<n>& dbias = biases.value[tile];
        if (turn > 0) {
          const Floats<n> before = load<n>(sums + i), bias_before = load<n>(sums + width + i);
#pragma unroll
          for (int e = 0; e < n; ++e) {
            dgain[e] += before[e];
            dbias[e] += bias_before[e];
          }
        }
        store<n>(sums + i, dgain);
        store<n>(sums + width + i, dbias);
      });
    __syncthreads();
  }
  float* const part = parts + (std::int64_t{blockIdx.x} * planes + blockIdx.y) * width;
  const std::int64_t all = std::int64_t{gridDim.x} * planes * width;
  for (std::int64_t i = first_column<n>(); i < width; i += next_columns<n>()) {
    store<n>(part + i, load<n>(sums + i));
    store<n>(part + all + i, load<n>(sums + width + i));
  }
}

/// dgain and dbias, of `width` columns each, from the parts of the blocks; dbias may be null.
static __global__ void sum_parts_kernel(std::int64_t blocks, std::int64_t width, const float* parts,
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

/// Adds the parts of the blocks to dgain and dbias.
inline void add_parts_of(const Cuda& cuda, std::int64_t blocks, std::int64_t stride,
                         const float* parts, float* dgain, float* dbias) {
  const dim3 columns(static_cast<unsigned>(divide_up(stride, column_threads)), dbias ? 2 : 1);
  launch(sum_parts_kernel, columns, dim3(column_threads, row_threads), 0, cuda, blocks, stride,
         parts, dgain, dbias);
}

/// Launches the backward kernels and adds to dgain and dbias. `four`: whether the outputs allow
/// four elements at a time.
template <class X, class To>
void norm_backward(const Cuda& cuda, std::int64_t rows, std::int64_t planes, std::int64_t width,
                   const X* dy, const X* x, const float* statistics, const float* gain, To to,
                   bool four, float* dgain, float* dbias) {
  if (rows <= 0 || width <= 0) return;
  const std::int64_t blocks = divide_up(rows, rows_of_block), stride = planes * width;
  float* const parts = workspace<float>(cuda, 2 * blocks * stride);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(planes));
  const auto bytes = static_cast<std::size_t>(2 * width) * sizeof(float);
  const auto by_warp = [&](auto tiles, auto whole) {
    launch(warp_backward_kernel<4, tiles, whole, X, To>, grid, backward_warps * warp_size, bytes,
           cuda, rows, width, dy, x, statistics, gain, to, parts);
  };
  if (four && by_fours(width, dy, x, gain, parts) && by_warps(width, by_warp))
    return add_parts_of(cuda, blocks, stride, parts, dgain, dbias);
  const bool shared = bytes <= 40 * 1024;  // of 48 KB, with that of block_sums()
  by_width(
      [&](auto n) {
        launch(layer_norm_backward_kernel<n, X, To>, grid, threads_for(divide_up(width, n)),
               shared ? bytes : 0, cuda, rows, width, dy, x, statistics, gain, to, parts, shared);
      },
      four ? width : 1, dy, x, gain, parts);
  add_parts_of(cuda, blocks, stride, parts, dgain, dbias);
}

/// Whether rows at x, `stride` apart, can be written four elements at a time.
template <class T>
bool by_fours_at(const T* x, std::int64_t stride) {
  return stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(x) % (4 * sizeof(T)) == 0;
}

}  // namespace nmt::cuda
