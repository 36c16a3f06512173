#include "cuda/kernels/assign.h"
#include "cuda/kernels/columns.h"
#include "cuda/kernels/dropout.h"
#include "cuda/kernels/reduce.h"
#include "cuda/kernels/vector.h"
#include "kernels/layer_norm.h"
#include "kernels/products/rounded.h"

#include <type_traits>

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

// Where the kernels below read and write n elements at a time, a thread has columns n threadIdx.x,
// n threadIdx.x + 1, ... of a row, and the same ones after n blockDim.x columns.
template <int n>
__device__ __forceinline__ std::int64_t first_column() {
  return std::int64_t{n} * threadIdx.x;
}
template <int n>
__device__ __forceinline__ std::int64_t next_columns() {
  return std::int64_t{n} * blockDim.x;
}

// The mean and 1/sigma of a row of `width` elements; `statistics` may be null.
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
  scale = 1.0f / sqrtf(block_sum(squares) * inverse + layer_norm_epsilon);
  if (statistics && threadIdx.x == 0) {
    statistics[0] = mean;
    statistics[1] = scale;
  }
}

// Normalizes a row: y, which may be x, and the same rounded where `rounded` is given.
template <int n, class X>
__device__ __forceinline__ void write_normal(const X* x, std::int64_t width, float mean,
                                             float scale, const float* gain, const float* bias,
                                             X* y, Bfloat16* rounded) {
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

// A row that fits into the registers of a warp: lane l has the columns n l, n l + 1, ... of each of
// `tiles` parts of 32 n columns. No barrier, and all loads of the row are in flight at once, which
// conditions would prevent: `whole` says that no part needs one.
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

  /// Of the values; `statistics` may be null.
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
    scale = 1.0f / sqrtf(warp_sum(squares) * inverse + layer_norm_epsilon);
    if (statistics && threadIdx.x % warp_size == 0) {
      statistics[0] = mean;
      statistics[1] = scale;
    }
  }

  /// Normalizes the values: y, and the same rounded where `rounded` is given.
  template <class X>
  __device__ __forceinline__ void write_normal(std::int64_t width, float mean, float scale,
                                               const float* gain, const float* bias, X* y,
                                               Bfloat16* rounded) {
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

// Rows of a block, a warp each.
constexpr unsigned warp_rows = 4;

__device__ __forceinline__ std::int64_t row_of_warp() {
  return std::int64_t{blockIdx.x} * warp_rows + threadIdx.x / warp_size;
}

// One warp per row of a plane, which is the block's row in the grid; y may be x.
template <int n, int tiles, bool whole, class X>
__global__ void __launch_bounds__(warp_rows* warp_size)
    layer_norm_warp_kernel(std::int64_t rows, std::int64_t width, const X* x, const float* gain,
                           const float* bias, X* y, float* statistics) {
  const std::int64_t row = row_of_warp(), number = row * gridDim.y + blockIdx.y,
                     at = number * width, parameters = blockIdx.y * width;
  if (row >= rows) return;
  WarpRow<n, tiles, whole> values;
  values.each(width,
              [&](std::int64_t i, Floats<n>& value, int) { value = read_all<n>(x + at + i); });
  float mean, scale;
  values.find_statistics(width, statistics ? statistics + 2 * number : nullptr, mean, scale);
  values.write_normal(width, mean, scale, gain + parameters, bias ? bias + parameters : nullptr,
                      y + at, nullptr);
}

template <int n, int tiles, bool whole>
__global__ void __launch_bounds__(warp_rows* warp_size)
    residual_norm_warp_kernel(ResidualNorm a, DropoutMask mask) {
  const std::int64_t row = row_of_warp(), at = row * a.width;
  if (row >= a.rows) return;
  WarpRow<n, tiles, whole> terms, sums;
  terms.each(a.width, [&](std::int64_t i, Floats<n>& value, int) {
    value = a.branch_rounded ? read_all<n>(a.branch_rounded + at + i) : load<n>(a.branch + at + i);
  });
  sums.each(a.width, [&](std::int64_t i, Floats<n>& value, int) { value = load<n>(a.x + at + i); });
  const std::int64_t start = mask.start_of(row);
  sums.each(a.width, [&](std::int64_t i, Floats<n>& value, int tile) {
    mask.apply_at<n>(start + i, terms.value[tile]);
#pragma unroll
    for (int e = 0; e < n; ++e) value[e] += terms.value[tile][e];
    store<n>(a.sum + at + i, value);
  });
  float mean, scale;
  sums.find_statistics(a.width, a.statistics ? a.statistics + 2 * row : nullptr, mean, scale);
  sums.write_normal(a.width, mean, scale, a.gain, a.bias, a.y + at,
                    a.rounded ? a.rounded + at : nullptr);
}

// One block per plane of a row. y may be x: one thread reads and writes an element.
template <int n, class X>
__global__ void layer_norm_kernel(std::int64_t planes, std::int64_t width, const X* x,
                                  const float* gain, const float* bias, X* y, float* statistics) {
  const std::int64_t at = std::int64_t{blockIdx.x} * width,
                     parameters = blockIdx.x % planes * width;
  float sum = 0, mean, scale;
  for (std::int64_t i = first_column<n>(); i < width; i += next_columns<n>()) {
    const Floats<n> value = read_all<n>(x + at + i);
#pragma unroll
    for (int e = 0; e < n; ++e) sum += value[e];
  }
  row_statistics<n>(x + at, width, sum, statistics ? statistics + 2 * blockIdx.x : nullptr, mean,
                    scale);
  write_normal<n>(x + at, width, mean, scale, gain + parameters, bias ? bias + parameters : nullptr,
                  y + at, nullptr);
}

// One block per row.
template <int n>
__global__ void residual_norm_kernel(ResidualNorm a, DropoutMask mask) {
  const std::int64_t row = blockIdx.x, at = row * a.width;
  float sum = 0, mean, scale;
  for (std::int64_t i = first_column<n>(); i < a.width; i += next_columns<n>()) {
    Floats<n> value =
        a.branch_rounded ? read_all<n>(a.branch_rounded + at + i) : load<n>(a.branch + at + i);
    const Floats<n> x = load<n>(a.x + at + i);
    mask.apply<n>(row, i, value);
#pragma unroll
    for (int e = 0; e < n; ++e) sum += value[e] += x[e];
    store<n>(a.sum + at + i, value);
  }
  row_statistics<n>(a.sum + at, a.width, sum, a.statistics ? a.statistics + 2 * row : nullptr, mean,
                    scale);
  write_normal<n>(a.sum + at, a.width, mean, scale, a.gain, a.bias, a.y + at,
                  a.rounded ? a.rounded + at : nullptr);
}

// Rows that one block takes backward. The order of the sums over rows depends on their number
// alone.
constexpr std::int64_t rows_of_block = 16;

// Where the gradient of a row goes: row(number) gives the place. To dx, which may be the gradient
// that the kernel reads, as one thread reads and writes an element.
template <class T>
struct ToRows {
  static constexpr bool adds = false;
  T* dx;
  std::int64_t stride;

  struct Row {
    T* dx;
    template <int n>
    __device__ __forceinline__ void put(std::int64_t column, const Floats<n>& d,
                                        const Floats<n>&) const {
      assign_all<n>(dx + column, d);
    }
  };
  __device__ __forceinline__ Row row(std::int64_t number) const { return {dx + number * stride}; }
};
// To both terms of a sum: x and the branch, through its dropout.
template <class T>
struct ToTerms {
  static constexpr bool adds = true;
  float* dx;
  const float* added;  // dx, where the gradient is added to it; or null
  std::int64_t width;
  T* dbranch;  // or null
  std::int64_t stride;
  DropoutMask mask;

  struct Row {
    const ToTerms& to;
    std::int64_t number, start;
    /// What is added to the gradient of x, to be loaded before the row is written.
    template <int n>
    __device__ __forceinline__ Floats<n> before(std::int64_t column) const {
      return to.added ? load<n>(to.added + number * to.width + column) : Floats<n>{};
    }
    template <int n>
    __device__ __forceinline__ void put(std::int64_t column, Floats<n> d,
                                        const Floats<n>& before) const {
      if (to.dx) {
        Floats<n> sum;
#pragma unroll
        for (int e = 0; e < n; ++e) sum[e] = d[e] + before[e];
        store<n>(to.dx + number * to.width + column, sum);
      }
      if (!to.dbranch) return;
      to.mask.template apply_at<n>(start + column, d);
      assign_all<n>(to.dbranch + number * to.stride + column, d);
    }
  };
  __device__ __forceinline__ Row row(std::int64_t number) const {
    return {*this, number, mask.start_of(number)};
  }
};

// With g = gain dy and n the normalized x: dx = rstd (g - mean(g) - n mean(g n)). A block takes a
// plane of some rows, and adds dy n and dy over them, each column by one thread: in parts [2,
// blocks along x, planes * width], through shared memory where rows fit.
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
    const std::int64_t number = row * planes + plane, at = number * width;
    const float x_mean = statistics[2 * number], scale = statistics[2 * number + 1];
    const typename To::Row place = to.row(row);
    float sum[2] = {};  // of g and of g n
    for (std::int64_t i = first_column<n>(); i < width; i += next_columns<n>()) {
      const Floats<n> d = read_all<n>(dy + at + i), value = read_all<n>(x + at + i),
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
      const Floats<n> d = read_all<n>(dy + at + i), value = read_all<n>(x + at + i),
                      factor = load<n>(gain + parameters + i);
      Floats<n> dx;
#pragma unroll
      for (int e = 0; e < n; ++e)
        dx[e] = scale * (d[e] * factor[e] - sum[0] * inverse -
                         (value[e] - x_mean) * scale * (sum[1] * inverse));
      Floats<n> before{};
      if constexpr (To::adds) before = place.template before<n>(parameters + i);
      place.template put<n>(parameters + i, dx, before);
    }
  }
  for (std::int64_t i = first_column<n>(); shared && i < width; i += next_columns<n>()) {
    store<n>(part + i, load<n>(gain_sums + i));
    store<n>(part + all + i, load<n>(bias_sums + i));
  }
}

// The same with a warp for each of some rows of the block, one after the other. A lane adds up the
// sums of its columns in registers; the warps add theirs in turn. A row is read twice, the second
// time from the first-level cache.
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
    const std::int64_t number = row * planes + blockIdx.y, at = number * width;
    const float mean = statistics[2 * number], scale = statistics[2 * number + 1];
    const typename To::Row place = to.row(row);
    float sum[2] = {};  // of g and of g n
    gains.each(width, [&](std::int64_t i, Floats<n>& dgain, int tile) {
      const Floats<n> d = read_all<n>(dy + at + i), value = read_all<n>(x + at + i),
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
        const Floats<n> d = read_all<n>(dy + at + i), value = read_all<n>(x + at + i),
                        factor = load_constant<n>(gain + parameters + i);
#pragma unroll
        for (int e = 0; e < n; ++e)
          dx[e] = scale * (d[e] * factor[e] - g_mean - (value[e] - mean) * scale * along);
      });
      if constexpr (To::adds)
        before.each(width - skipped, [&](std::int64_t column, Floats<n>& added, int) {
          added = place.template before<n>(parameters + skipped + column);
        });
      out.each(width - skipped, [&](std::int64_t column, const Floats<n>& dx, int tile) {
        place.template put<n>(parameters + skipped + column, dx, before.value[tile]);
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

// start(std::integral_constant<int, n>) with four elements at a time where rows allow it, else with
// one.
template <class Start, class... Pointers>
void by_width(Start start, std::int64_t width, const Pointers*... pointers) {
  if (by_fours(width, pointers...))
    start(std::integral_constant<int, 4>());
  else
    start(std::integral_constant<int, 1>());
}

// start(tiles, whole), constants, where rows of `width` columns, four at a time, fit into the
// registers of a warp.
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

template <class X>
void forward(const Cuda& cuda, std::int64_t rows, std::int64_t planes, std::int64_t width,
             const X* x, const float* gain, const float* bias, X* y, float* statistics) {
  const std::int64_t all = rows * planes;
  const auto by_warp = [&](auto tiles, auto whole) {
    const dim3 grid(static_cast<unsigned>(divide_up(rows, warp_rows)),
                    static_cast<unsigned>(planes));
    launch(layer_norm_warp_kernel<4, tiles, whole, X>, grid, warp_rows * warp_size, 0, cuda, rows,
           width, x, gain, bias, y, statistics);
  };
  if (by_fours(width, x, gain, bias, y) && by_warps(width, by_warp)) return;
  by_width(
      [&](auto n) {
        launch(layer_norm_kernel<n, X>, static_cast<unsigned>(all),
               threads_for(divide_up(width, n)), 0, cuda, planes, width, x, gain, bias, y,
               statistics);
      },
      width, x, gain, bias, y);
}

}  // namespace

void layer_norm(const Cuda& cuda, std::int64_t rows, std::int64_t planes, std::int64_t width,
                const float* x, const float* gain, const float* bias, float* y, float* statistics) {
  forward(cuda, rows, planes, width, x, gain, bias, y, statistics);
}
void layer_norm_rounded(const Cuda& cuda, std::int64_t rows, std::int64_t planes,
                        std::int64_t width, const Bfloat16* x, const float* gain, const float* bias,
                        Bfloat16* y, float* statistics) {
  forward(cuda, rows, planes, width, x, gain, bias, y, statistics);
}

void residual_norm(const Cuda& cuda, const ResidualNorm& a, const Dropout& dropout) {
  const DropoutMask mask(dropout, a.width);
  const auto by_warp = [&](auto tiles, auto whole) {
    launch(residual_norm_warp_kernel<4, tiles, whole>,
           static_cast<unsigned>(divide_up(a.rows, warp_rows)), warp_rows * warp_size, 0, cuda, a,
           mask);
  };
  if (by_fours(a.width, a.x, a.branch, a.branch_rounded, a.gain, a.bias, a.sum, a.y, a.rounded) &&
      by_warps(a.width, by_warp))
    return;
  by_width(
      [&](auto n) {
        launch(residual_norm_kernel<n>, static_cast<unsigned>(a.rows),
               threads_for(divide_up(a.width, n)), 0, cuda, a, mask);
      },
      a.width, a.x, a.branch, a.branch_rounded, a.gain, a.bias, a.sum, a.y, a.rounded);
}

namespace {

void add_parts_of(const Cuda& cuda, std::int64_t blocks, std::int64_t stride, const float* parts,
                  float* dgain, float* dbias) {
  const dim3 columns(static_cast<unsigned>(divide_up(stride, column_threads)), dbias ? 2 : 1);
  launch(sum_parts_kernel, columns, dim3(column_threads, row_threads), 0, cuda, blocks, stride,
         parts, dgain, dbias);
}

// `four`: whether the outputs allow four elements at a time.
template <class X, class To>
void backward(const Cuda& cuda, std::int64_t rows, std::int64_t planes, std::int64_t width,
              const X* dy, const X* x, const float* statistics, const float* gain, To to, bool four,
              float* dgain, float* dbias) {
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

template <class T>
bool by_fours_at(const T* x, std::int64_t stride) {
  return stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(x) % (4 * sizeof(T)) == 0;
}

template <class T>
void to_terms(const Cuda& cuda, const ResidualNorm& a, const Dropout& dropout,
              const ResidualNormGradient& g, T* dbranch, std::int64_t stride) {
  const ToTerms<T> to{g.dx,   g.accumulate ? g.dx : nullptr, a.width, dbranch,
                      stride, DropoutMask(dropout, a.width)};
  backward(cuda, a.rows, 1, a.width, g.dy, a.sum, a.statistics, a.gain, to,
           by_fours_at(g.dx, a.width) && by_fours_at(dbranch, stride), g.dgain, g.dbias);
}

}  // namespace

void layer_norm_backward(const Cuda& cuda, std::int64_t rows, std::int64_t planes,
                         std::int64_t width, const float* dy, const float* x,
                         const float* statistics, const float* gain, float* dx, float* dgain,
                         float* dbias) {
  const std::int64_t stride = planes * width;
  backward(cuda, rows, planes, width, dy, x, statistics, gain, ToRows<float>{dx, stride},
           by_fours_at(dx, stride), dgain, dbias);
}
void layer_norm_backward_rounded(const Cuda& cuda, std::int64_t rows, std::int64_t planes,
                                 std::int64_t width, const float* dy, const float* x,
                                 const float* statistics, const float* gain, Bfloat16* dx,
                                 float* dgain, float* dbias) {
  const std::int64_t stride = rounded_stride(planes * width);
  backward(cuda, rows, planes, width, dy, x, statistics, gain, ToRows<Bfloat16>{dx, stride},
           by_fours_at(dx, stride), dgain, dbias);
}

void layer_norm_backward_rounded(const Cuda& cuda, std::int64_t rows, std::int64_t planes,
                                 std::int64_t width, const Bfloat16* dy, const Bfloat16* x,
                                 const float* statistics, const float* gain, Bfloat16* dx,
                                 float* dgain, float* dbias) {
  const std::int64_t stride = planes * width;
  backward(cuda, rows, planes, width, dy, x, statistics, gain, ToRows<Bfloat16>{dx, stride},
           by_fours_at(dx, stride), dgain, dbias);
}

void residual_norm_backward(const Cuda& cuda, const ResidualNorm& a, const Dropout& dropout,
                            const ResidualNormGradient& g) {
  NMT_CHECK(!g.dbranch || !g.dbranch_rounded, "the gradient of the branch goes to one place");
  if (g.dbranch_rounded)
    to_terms(cuda, a, dropout, g, g.dbranch_rounded, rounded_stride(a.width));
  else
    to_terms(cuda, a, dropout, g, g.dbranch, a.width);
}

}  // namespace nmt::kernels
