#include "cuda/kernels/assign.h"
#include "cuda/kernels/norms/norm_rows.h"
#include "kernels/layer_norm.h"
#include "kernels/products/product_input.h"

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

// One warp per row; blockIdx.y is the plane. y may be x.
template <int n, int tiles, bool whole, class X>
__global__ void __launch_bounds__(warp_rows* warp_size)
    layer_norm_warp_kernel(std::int64_t rows, std::int64_t width, const X* x, const float* gain,
                           const float* bias, X* y, float* statistics) {
  const std::int64_t row = row_of_warp(), number = row * gridDim.y + blockIdx.y,
                     row_offset = number * width, parameters = blockIdx.y * width;
  if (row >= rows) return;
  WarpRow<n, tiles, whole> values;
  values.each(width, [&](std::int64_t i, Floats<n>& value, int) {
    value = read_all<n>(x + row_offset + i);
  });
  float mean, scale;
  values.find_statistics(width, statistics ? statistics + 2 * number : nullptr, mean, scale);
  values.write_normal(width, mean, scale, gain + parameters, bias ? bias + parameters : nullptr,
                      y + row_offset, nullptr);
}

// One block per plane of a row. y may be x: one thread reads and writes an element.
template <int n, class X>
__global__ void layer_norm_kernel(std::int64_t planes, std::int64_t width, const X* x,
                                  const float* gain, const float* bias, X* y, float* statistics) {
  const std::int64_t row_offset = std::int64_t{blockIdx.x} * width,
                     parameters = blockIdx.x % planes * width;
  float sum = 0, mean, scale;
  for (std::int64_t i = first_column<n>(); i < width; i += next_columns<n>()) {
    const Floats<n> value = read_all<n>(x + row_offset + i);
#pragma unroll
    for (int e = 0; e < n; ++e) sum += value[e];
  }
  row_statistics<n>(x + row_offset, width, sum, statistics ? statistics + 2 * blockIdx.x : nullptr,
                    mean, scale);
  write_normal<n>(x + row_offset, width, mean, scale, gain + parameters,
                  bias ? bias + parameters : nullptr, y + row_offset, nullptr);
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

// Writes the gradient of a row to dx. dx may be dy: one thread reads and writes an element.
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

void layer_norm_backward(const Cuda& cuda, std::int64_t rows, std::int64_t planes,
                         std::int64_t width, const float* dy, const float* x,
                         const float* statistics, const float* gain, float* dx, float* dgain,
                         float* dbias) {
  const std::int64_t stride = planes * width;
  norm_backward(cuda, rows, planes, width, dy, x, statistics, gain, ToRows<float>{dx, stride},
                by_fours_at(dx, stride), dgain, dbias);
}
void layer_norm_backward_rounded(const Cuda& cuda, std::int64_t rows, std::int64_t planes,
                                 std::int64_t width, const float* dy, const float* x,
                                 const float* statistics, const float* gain, Bfloat16* dx,
                                 float* dgain, float* dbias) {
  const std::int64_t stride = rounded_stride(planes * width);
  norm_backward(cuda, rows, planes, width, dy, x, statistics, gain, ToRows<Bfloat16>{dx, stride},
                by_fours_at(dx, stride), dgain, dbias);
}

void layer_norm_backward_rounded(const Cuda& cuda, std::int64_t rows, std::int64_t planes,
                                 std::int64_t width, const Bfloat16* dy, const Bfloat16* x,
                                 const float* statistics, const float* gain, Bfloat16* dx,
                                 float* dgain, float* dbias) {
  const std::int64_t stride = planes * width;
  norm_backward(cuda, rows, planes, width, dy, x, statistics, gain, ToRows<Bfloat16>{dx, stride},
                by_fours_at(dx, stride), dgain, dbias);
}

}  // namespace nmt::kernels
