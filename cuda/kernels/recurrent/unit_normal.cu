#include "cuda/kernels/recurrent/unit_row.h"
#include "cuda/kernels/recurrent/unit_table.h"

// The units' steps with layer normalization of their inputs, one block per row.

namespace nmt::cuda {
namespace {

template <class U>
__global__ void __launch_bounds__(max_row_block, 1) forward_kernel(UnitSteps a) {
  const std::int64_t row = blockIdx.x, h = a.width;
  if constexpr (U::late > 0) {
    complete<U::late>(a.late, a.late_bias, a.late_norm, row, h);
  } else {
    complete<U::recurrents>(a.u, a.u_bias, a.u_norm, row, h);
    complete<U::inputs>(a.raw_x, a.x_bias, a.x_norm, row, h);
  }
  for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x) {
    bool live;
    const Step<float, U> step = load_all<U>(a, {row, column}, true, live);
    float state[U::states];
    for (int p = 0; p < U::states; ++p) state[p] = step.s[p];
    if (live) U::forward(step, state);
    for (int p = 0; p < U::states; ++p) a.next[p][row * h + column] = state[p];
    if (a.next_rounded) assign(a.next_rounded[row * h + column], state[0]);
  }
}

template <class U>
__global__ void __launch_bounds__(max_row_block, 1) late_value_kernel(UnitSteps a, float* out) {
  const std::int64_t row = blockIdx.x, h = a.width;
  complete<U::recurrents>(a.u, a.u_bias, a.u_norm, row, h);
  complete<U::inputs>(a.raw_x, a.x_bias, a.x_norm, row, h);
  for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x) {
    const Channel at{row, column};
    bool live;
    const float value = U::late_value(load_all<U>(a, at, false, live));
    out[late_place(a, at)] = value;
    if (a.late_value_rounded) assign(a.late_value_rounded[row * h + column], value);
  }
}

template <class U>
__global__ void __launch_bounds__(max_row_block, 1)
    backward_kernel(UnitSteps a, UnitStepsGradient g) {
  const std::int64_t row = blockIdx.x, h = a.width;
  for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x) {
    const std::int64_t n = row * h + column;
    bool live;
    const Step<float, U> step = load_all<U>(a, {row, column}, true, live);
    float carry[U::states];
    for (int p = 0; p < U::states; ++p) carry[p] = g.carry[p][n];
    if (g.dh) carry[0] += g.dh[n];
    Step<float, U> d{};
    if (live) {
      U::backward(step, carry, d);
      for (int p = 0; p < U::vectors; ++p)
        g.vector_sums[row * g.sums_stride + p * h + column] += d.v[p];
      for (int p = 0; p < U::states; ++p) carry[p] = d.s[p];
    }
    store_dx<U>(g, row, column, h, d.x);
    store_planes<U::recurrents>(g.du, row, column, h, d.u);
    store_planes<U::late>(g.dlate, row, column, h, d.late);
    store_planes<position_vectors_of<U>>(g.dpositions, row, column, h, d.position);
    for (int p = 0; p < U::states; ++p) g.carry[p][n] = carry[p];
  }
  if constexpr (U::late > 0) {
    complete_backward<U::late>(g.dlate, a.late_norm, row, h);
    round_row<U::late>(g.dlate, row, h, g.dlate_rounded);
  } else {
    complete_backward<U::recurrents>(g.du, a.u_norm, row, h);
    complete_backward<U::inputs>(g.dx, a.x_norm, row, h);
    round_row<U::recurrents>(g.du, row, h, g.du_rounded);
    if (g.dx) round_row<U::inputs>(g.dx, row, h, g.dx_rounded);
  }
}

template <class U>
__global__ void __launch_bounds__(max_row_block, 1)
    late_backward_kernel(UnitSteps a, const float* dlate_value, UnitStepsGradient g) {
  const std::int64_t row = blockIdx.x, h = a.width;
  for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x) {
    const Channel at{row, column};
    bool live;
    const Step<float, U> step = load_all<U>(a, at, true, live);
    if (!live) continue;
    Step<float, U> d{};
    U::late_backward(step, dlate_value[late_place(a, at)], d);
    add_planes<U::inputs>(g.dx, row, column, h, d.x);
    add_planes<U::recurrents>(g.du, row, column, h, d.u);
    for (int p = 0; p < U::states; ++p) g.carry[p][row * h + column] += d.s[p];
  }
  complete_backward<U::recurrents>(g.du, a.u_norm, row, h);
  complete_backward<U::inputs>(g.dx, a.x_norm, row, h);
  round_row<U::recurrents>(g.du, row, h, g.du_rounded);
  round_row<U::inputs>(g.dx, row, h, g.dx_rounded);
}

template <class Kernel, class... Arguments>
void launch_rows(const Cuda& cuda, Kernel kernel, const UnitSteps& a,
                 const Arguments&... arguments) {
  launch(kernel, static_cast<unsigned>(a.rows), row_block(a.width), 0, cuda, a, arguments...);
}

template <class U>
struct Rows {
  static void forward(const Cuda& cuda, const UnitSteps& a) {
    launch_rows(cuda, forward_kernel<U>, a);
  }
  static void backward(const Cuda& cuda, const UnitSteps& a, const UnitStepsGradient& g) {
    launch_rows(cuda, backward_kernel<U>, a, g);
  }
  static void late_value(const Cuda& cuda, const UnitSteps& a, float* out) {
    launch_rows(cuda, late_value_kernel<U>, a, out);
  }
  static void late_backward(const Cuda& cuda, const UnitSteps& a, const float* dlate_value,
                            const UnitStepsGradient& g) {
    launch_rows(cuda, late_backward_kernel<U>, a, dlate_value, g);
  }
};

}  // namespace

const UnitKernels& row_kernels(const kernels::Unit& unit) {
  return kernels_in_table<Rows>(unit);
}

}  // namespace nmt::cuda
