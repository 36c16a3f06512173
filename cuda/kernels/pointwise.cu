#include "cuda/kernels/columns.h"
#include "cuda/kernels/dropout.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/vector.h"
#include "kernels/math.h"
#include "kernels/pointwise.h"

namespace nmt::kernels {

using namespace nmt::cuda;

void fill(const Cuda& cuda, float* x, std::int64_t n, float value) {
  each(cuda, n, [=] __device__(std::int64_t i) { x[i] = value; });
}

void add_scaled(const Cuda& cuda, std::int64_t n, float alpha, const float* x, float* y) {
  each(cuda, n, [=] __device__(std::int64_t i) { y[i] += alpha * x[i]; });
}

void scale(const Cuda& cuda, std::int64_t n, float alpha, const float* x, float* y) {
  each(cuda, n, [=] __device__(std::int64_t i) { y[i] = alpha * x[i]; });
}

void add(const Cuda& cuda, std::int64_t n, const float* x, const float* y, float* z) {
  each(cuda, n, [=] __device__(std::int64_t i) { z[i] = x[i] + y[i]; });
}

void add_bias(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* x,
              const float* bias, float* y) {
  each_of_rows(cuda, rows, width, [=] __device__(std::int64_t row, std::int32_t column) {
    const std::int64_t i = row * width + column;
    y[i] = x[i] + bias[column];
  });
}

void sum_rows(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* dy,
              float* dbias) {
  add_columns(
      cuda, rows, width,
      [=] __device__(std::int64_t r, std::int64_t i) { return dy[r * width + i]; }, dbias);
}

void tanh_forward(const Cuda& cuda, std::int64_t n, const float* x, float* y) {
  each(cuda, n, [=] __device__(std::int64_t i) { y[i] = math::tanh(x[i]); });
}

void tanh_backward(const Cuda& cuda, std::int64_t n, const float* y, const float* dy, float* dx,
                   bool adds) {
  each(cuda, n, [=] __device__(std::int64_t i) {
    const float slope = dy[i] * (1.0f - y[i] * y[i]);
    dx[i] = adds ? dx[i] + slope : slope;
  });
}

namespace {

// Elements 4 quad to 4 quad + 3 of a mask, as far as they are among the n elements from `first` on.
// `fours`: x and y are at multiples of 16 bytes.
__device__ __forceinline__ void drop_quad(const DropoutMask& mask, std::int64_t quad,
                                          std::int64_t first, std::int64_t n, bool fours,
                                          const float* x, float* y) {
  const auto word = mask.words(quad);
  const std::int64_t begin = 4 * quad - first;
  if (fours && first % 4 == 0 && begin + 4 <= n) {
    Float4 value = load4(x + begin);
#pragma unroll
    for (int i = 0; i < 4; ++i) value[i] = mask.apply(word[static_cast<std::size_t>(i)], value[i]);
    return store4(y + begin, value);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::int64_t index = begin + i;
    if (index >= 0 && index < n) y[index] = mask.apply(word[static_cast<std::size_t>(i)], x[index]);
  }
}

}  // namespace

// A counter gives four random words, so a thread computes four elements.
void dropout(const Cuda& cuda, std::int64_t rows, std::int64_t width, const RowMap& map, float p,
             std::uint64_t key, std::uint64_t stream, const float* x, float* y) {
  const DropoutMask mask({p, key, stream, map}, width);
  const bool fours = by_fours(width, x, y);
  if (map.in_order()) {
    const std::int64_t n = rows * width;
    each(cuda, divide_up(n, 4),
         [=] __device__(std::int64_t quad) { drop_quad(mask, quad, 0, n, fours, x, y); });
    return;
  }
  // Quads that may overlap a row.
  const std::int64_t quads = width / 4 + (width % 4 == 0 ? 0 : 2);
  each_of_rows(cuda, rows, quads, [=] __device__(std::int64_t row, std::int32_t quad) {
    const std::int64_t first = map(row) * width;
    drop_quad(mask, first / 4 + quad, first, width, fours, x + row * width, y + row * width);
  });
}

void gather_rows(const Cuda& cuda, std::int64_t rows, std::int64_t width, const std::int32_t* ids,
                 const float* table, float* out) {
  if (by_fours(width, table, out)) {
    each_of_rows(cuda, rows, width / 4, [=] __device__(std::int64_t row, std::int32_t quad) {
      const std::int32_t column = 4 * quad;
      store4(out + row * width + column, load4(table + ids[row] * width + column));
    });
  } else {
    each_of_rows(cuda, rows, width, [=] __device__(std::int64_t row, std::int32_t column) {
      out[row * width + column] = table[ids[row] * width + column];
    });
  }
}

void pick(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* x,
          const std::int32_t* columns, float* out) {
  each(cuda, rows, [=] __device__(std::int64_t r) { out[r] = x[r * width + columns[r]]; });
}

namespace {

// One block per run (the rows of one symbol) and part of the columns; it sums the rows in order.
__global__ void scatter_add_kernel(std::int64_t rows, std::int64_t width, std::int64_t vocabulary,
                                   const std::int32_t* ids, const std::int32_t* runs,
                                   const float* dy, float* dtable, Fault* fault) {
  const std::int64_t begin = runs[rows + blockIdx.x], end = runs[rows + blockIdx.x + 1];
  if (begin == end) return;  // there may be fewer runs than rows
  const std::int32_t id = ids[runs[begin]];
  if (id < 0 || id >= vocabulary) {
    if (threadIdx.x == 0) report(fault, symbol_outside_vocabulary, id, vocabulary);
    return;
  }
  const std::int64_t column = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (column >= width) return;
  float sum = dtable[id * width + column];
#pragma unroll 8  // loads in flight
  for (std::int64_t i = begin; i < end; ++i) sum += dy[runs[i] * width + column];
  dtable[id * width + column] = sum;
}

}  // namespace

void scatter_add_rows(const Cuda& cuda, std::int64_t rows, std::int64_t width,
                      std::int64_t vocabulary, const std::int32_t* ids, const std::int32_t* runs,
                      const float* dy, float* dtable) {
  constexpr unsigned threads = 128;
  const dim3 grid(static_cast<unsigned>(rows), static_cast<unsigned>(divide_up(width, threads)));
  launch(scatter_add_kernel, grid, threads, 0, cuda, rows, width, vocabulary, ids, runs, dy, dtable,
         state_of(cuda).device_fault);
}

void add_to_rows(const Cuda& cuda, std::int64_t rows, std::int64_t width,
                 const std::int32_t* targets, const float* from, float* to) {
  each_of_rows(cuda, rows, width, [=] __device__(std::int64_t row, std::int32_t column) {
    to[targets[row] * width + column] += from[row * width + column];
  });
}

void copy_columns(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* from,
                  std::int64_t from_stride, float* to, std::int64_t to_stride, bool accumulate) {
  each_of_rows(cuda, rows, width, [=] __device__(std::int64_t row, std::int32_t column) {
    float* const target = to + row * to_stride + column;
    const float value = from[row * from_stride + column];
    *target = accumulate ? *target + value : value;
  });
}

}  // namespace nmt::kernels
