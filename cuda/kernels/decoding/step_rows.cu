#include "cuda/kernels/assign.h"
#include "cuda/kernels/dropout.h"
#include "cuda/kernels/elementwise.h"
#include "kernels/decoding/step_rows.h"
#include "kernels/math.h"

#include <algorithm>

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

constexpr std::size_t max_matrices = 16;  // of a launch
struct Matrices {
  RowsOfMatrix of[max_matrices];
};

// The blocks with blockIdx.y = y copy rows of matrix y.
template <int n>
__global__ void gather_rows_kernel(Matrices matrices, std::int64_t rows, const std::int32_t* ids) {
  const RowsOfMatrix& matrix = matrices.of[blockIdx.y];
  const std::int64_t pieces = matrix.width / n;
  for (std::int64_t i = grid_index(); i < rows * pieces; i += grid_stride()) {
    const std::int64_t row = i / pieces, column = i % pieces * n;
    store<n>(matrix.to + row * matrix.width + column,
             load<n>(matrix.from + ids[row] * matrix.width + column));
  }
}

template <int n>
__global__ void join_columns_kernel(Matrices matrices, std::int64_t rows, std::int64_t width,
                                    float* y, Bfloat16* rounded) {
  for (std::int64_t i = n * grid_index(); i < rows * width; i += n * grid_stride()) {
    const std::int64_t row = i / width;
    std::int64_t column = i % width;
    int part = 0;
    while (column >= matrices.of[part].width) column -= matrices.of[part++].width;
    const RowsOfMatrix& matrix = matrices.of[part];
    const Floats<n> value = load<n>(matrix.from + row * matrix.width + column);
    store<n>(y + i, value);
    if (rounded) assign_all<n>(rounded + i, value);
  }
}

Matrices at_once(std::span<const RowsOfMatrix> matrices) {
  Matrices some{};
  std::ranges::copy(matrices, some.of);
  return some;
}

}  // namespace

void gather_rows_of_each(const Cuda& cuda, std::int64_t rows, const std::int32_t* ids,
                         std::span<const RowsOfMatrix> matrices) {
  constexpr unsigned threads = 256;
  for (; !matrices.empty(); matrices = matrices.subspan(std::min(matrices.size(), max_matrices))) {
    const auto some = matrices.first(std::min(matrices.size(), max_matrices));
    std::int64_t max_width = 0;
    bool four = true;
    for (const RowsOfMatrix& m : some) {
      max_width = std::max(max_width, m.width);
      four = four && by_fours(m.width, m.from, m.to);
    }
    const dim3 grid(blocks_for(cuda, rows * max_width / (four ? 4 : 1), threads),
                    static_cast<unsigned>(some.size()));
    launch(four ? gather_rows_kernel<4> : gather_rows_kernel<1>, grid, threads, 0, cuda,
           at_once(some), rows, ids);
  }
}

void join_columns(const Cuda& cuda, std::int64_t rows, std::span<const RowsOfMatrix> matrices,
                  float* y, Bfloat16* rounded) {
  constexpr unsigned threads = 256;
  NMT_CHECK(matrices.size() <= max_matrices, "{} matrices side by side, at most {} are possible",
            matrices.size(), max_matrices);
  std::int64_t width = 0;
  bool four = true;
  for (const RowsOfMatrix& m : matrices) {
    width += m.width;
    four = four && by_fours(m.width, m.from);
  }
  four = four && by_fours(width, y) && reinterpret_cast<std::uintptr_t>(rounded) % 8 == 0;
  launch(four ? join_columns_kernel<4> : join_columns_kernel<1>,
         blocks_for(cuda, rows * width / (four ? 4 : 1), threads), threads, 0, cuda,
         at_once(matrices), rows, width, y, rounded);
}

void tanh_rounded(const Cuda& cuda, std::int64_t n, const float* x, float* y, Bfloat16* rounded) {
  each(cuda, n, [=] __device__(std::int64_t i) {
    const float value = math::tanh(x[i]);
    y[i] = value;
    assign(rounded[i], value);
  });
}

void gather_rows_rounded(const Cuda& cuda, std::int64_t rows, std::int64_t width,
                         const std::int32_t* ids, const float* table, float* y, Bfloat16* rounded) {
  NMT_CHECK(by_fours(width, table, y, rounded), "rows of {} by fours", width);
  each_of_rows(cuda, rows, width / 4, [=] __device__(std::int64_t row, std::int32_t quad) {
    const std::int32_t column = 4 * quad;
    const Float4 value = load4(table + ids[row] * width + column);
    store4(y + row * width + column, value);
    assign_all<4>(rounded + row * width + column, value);
  });
}

void dropout_rounded(const Cuda& cuda, std::int64_t rows, std::int64_t width,
                     const Dropout& dropout, const float* x, float* y, Bfloat16* rounded) {
  NMT_CHECK(by_fours(width, x, y, rounded), "dropout of rows of {} by fours", width);
  const DropoutMask mask(dropout, width);
  each_of_rows(cuda, rows, width / 4, [=] __device__(std::int64_t row, std::int32_t quad) {
    const std::int32_t column = 4 * quad;
    const std::int64_t offset = row * width + column;
    Float4 value = load4(x + offset);
    mask.apply<4>(row, column, value);
    store4(y + offset, value);
    assign_all<4>(rounded + offset, value);
  });
}

}  // namespace nmt::kernels
