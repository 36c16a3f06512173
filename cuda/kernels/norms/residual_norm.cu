#include "cuda/kernels/assign.h"
#include "cuda/kernels/dropout.h"
#include "cuda/kernels/norms/norm_rows.h"
#include "kernels/layer_norm.h"
#include "kernels/products/product_input.h"

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

// One warp per row.
template <int n, int tiles, bool whole>
__global__ void __launch_bounds__(warp_rows* warp_size)
    residual_norm_warp_kernel(ResidualNorm a, DropoutMask mask) {
  const std::int64_t row = row_of_warp(), row_offset = row * a.width;
  if (row >= a.rows) return;
  WarpRow<n, tiles, whole> terms, sums;
  terms.each(a.width, [&](std::int64_t i, Floats<n>& value, int) {
    value = a.branch_rounded ? read_all<n>(a.branch_rounded + row_offset + i)
                             : load<n>(a.branch + row_offset + i);
  });
  sums.each(a.width,
            [&](std::int64_t i, Floats<n>& value, int) { value = load<n>(a.x + row_offset + i); });
  const std::int64_t start = mask.start_of(row);
  sums.each(a.width, [&](std::int64_t i, Floats<n>& value, int tile) {
    mask.apply_at<n>(start + i, terms.value[tile]);
#pragma unroll
    for (int e = 0; e < n; ++e) value[e] += terms.value[tile][e];
    store<n>(a.sum + row_offset + i, value);
  });
  float mean, scale;
  sums.find_statistics(a.width, a.statistics ? a.statistics + 2 * row : nullptr, mean, scale);
  sums.write_normal(a.width, mean, scale, a.gain, a.bias, a.y + row_offset,
                    a.rounded ? a.rounded + row_offset : nullptr);
}

// One block per row.
template <int n>
__global__ void residual_norm_kernel(ResidualNorm a, DropoutMask mask) {
  const std::int64_t row = blockIdx.x, row_offset = row * a.width;
  float sum = 0, mean, scale;
  for (std::int64_t i = first_column<n>(); i < a.width; i += next_columns<n>()) {
    Floats<n> value = a.branch_rounded ? read_all<n>(a.branch_rounded + row_offset + i)
                                       : load<n>(a.branch + row_offset + i);
    const Floats<n> x = load<n>(a.x + row_offset + i);
    mask.apply<n>(row, i, value);
#pragma unroll
    for (int e = 0; e < n; ++e) sum += value[e] += x[e];
    store<n>(a.sum + row_offset + i, value);
  }
  row_statistics<n>(a.sum + row_offset, a.width, sum,
                    a.statistics ? a.statistics + 2 * row : nullptr, mean, scale);
  write_normal<n>(a.sum + row_offset, a.width, mean, scale, a.gain, a.bias, a.y + row_offset,
                  a.rounded ? a.rounded + row_offset : nullptr);
}

// Writes the gradient of a row to both terms of the sum: x, and the branch through its dropout.
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
    /// The gradient to which that of x is added, loaded before the row is written.
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

template <class T>
void to_terms(const Cuda& cuda, const ResidualNorm& a, const Dropout& dropout,
              const ResidualNormGradient& g, T* dbranch, std::int64_t stride) {
  const ToTerms<T> to{g.dx,   g.accumulate ? g.dx : nullptr, a.width, dbranch,
                      stride, DropoutMask(dropout, a.width)};
  norm_backward(cuda, a.rows, 1, a.width, g.dy, a.sum, a.statistics, a.gain, to,
                by_fours_at(g.dx, a.width) && by_fours_at(dbranch, stride), g.dgain, g.dbias);
}

}  // namespace

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

void residual_norm_backward(const Cuda& cuda, const ResidualNorm& a, const Dropout& dropout,
                            const ResidualNormGradient& g) {
  NMT_CHECK(!g.dbranch || !g.dbranch_rounded, "the gradient of the branch goes to one place");
  if (g.dbranch_rounded)
    to_terms(cuda, a, dropout, g, g.dbranch_rounded, rounded_stride(a.width));
  else
    to_terms(cuda, a, dropout, g, g.dbranch, a.width);
}

}  // namespace nmt::kernels
