#include "cuda/kernels/recurrent/unit_row.h"
#include "cuda/kernels/recurrent/unit_table.h"

// The units' steps with layer normalization of their inputs, one block per row.

namespace nmt::cuda {
namespace {

// With products of both x and u, the inputs of the second completion are loaded after the first
// completion: a thread has no registers for both.
template <class U>
constexpr bool loads_x_early = U::recurrents == 0;

// Completes the products of a step's x and u in the first kernel after them.
template <class U>
struct Products {
  Completion<U::recurrents> u;
  Completion<U::inputs> x;

  __device__ __forceinline__ Products(const UnitSteps& a, std::int64_t row)
      : u(a.u, a.u_bias, a.u_norm, row, a.width), x(a.raw_x, a.x_bias, a.x_norm, row, a.width) {
    u.load();
    if (loads_x_early<U>) x.load();
  }
  __device__ __forceinline__ void complete(Step<float, U> (&kept)[kept_columns]) {
    u.run([&](int k) -> auto& { return kept[k].u; });
    if (!loads_x_early<U>) x.load();
    x.run([&](int k) -> auto& { return kept[k].x; });
  }
};
// Completes the late product; the other products are complete.
template <class U>
struct LateProduct {
  Completion<U::late> late;

  __device__ __forceinline__ LateProduct(const UnitSteps& a, std::int64_t row)
      : late(a.late, a.late_bias, a.late_norm, row, a.width) {
    late.load();
  }
  __device__ __forceinline__ void complete(Step<float, U> (&kept)[kept_columns]) {
    late.run([&](int k) -> auto& { return kept[k].late; });
  }
};

// use(column, step, live) for the columns of a row, when `Part` of its products is complete.
template <class Part, class U, class X, class Use>
__device__ __forceinline__ void each_completed(const UnitSteps& a, const X* x, bool with_late,
                                               Use&& use) {
  const std::int64_t row = blockIdx.x, h = a.width;
  EarlyStep<U, X> early[kept_columns];
  each_kept(h, [&](int k, std::int64_t column) { early[k].load(a, x, {row, column}, with_late); });
  Part part(a, row);
  Step<float, U> kept[kept_columns];
  each_kept(h, [&](int k, std::int64_t) { kept[k] = early[k].step(); });
  part.complete(kept);
  each_kept(h, [&](int k, std::int64_t column) { use(column, kept[k], early[k].is_live()); });
  each_further(h, [&](std::int64_t column) {
    bool live;
    const Step<float, U> step = load_all<U>(a, {row, column}, with_late, live);
    use(column, step, live);
  });
}

template <class U>
__global__ void __launch_bounds__(max_row_block, 1) forward_kernel(UnitSteps a) {
  using Part = std::conditional_t<(U::late > 0), LateProduct<U>, Products<U>>;
  const auto use = [&](std::int64_t column, const Step<float, U>& step, bool live) {
    const std::int64_t n = blockIdx.x * a.width + column;
    float state[U::states];
    for (int p = 0; p < U::states; ++p) state[p] = step.s[p];
    if (live) U::forward(step, state);
    for (int p = 0; p < U::states; ++p) a.next[p][n] = state[p];
    if (a.next_rounded) assign(a.next_rounded[n], state[0]);
  };
  with_inputs<U>(a, [&](auto* x) { each_completed<Part, U>(a, x, true, use); });
}

template <class U>
__global__ void __launch_bounds__(max_row_block, 1) late_value_kernel(UnitSteps a, float* out) {
  const auto use = [&](std::int64_t column, const Step<float, U>& step, bool) {
    const float value = U::late_value(step);
    out[late_value_offset(a, {blockIdx.x, column})] = value;
    if (a.late_value_rounded) assign(a.late_value_rounded[blockIdx.x * a.width + column], value);
  };
  each_completed<Products<U>, U>(a, a.x, false, use);
}

template <class U, class X>
__device__ __forceinline__ void backward(const UnitSteps& a, const X* x,
                                         const UnitStepsGradient& g) {
  const std::int64_t row = blockIdx.x, h = a.width;
  // The products whose gradients are complete after this kernel.
  constexpr int late = U::late, recurrents = late > 0 ? 0 : U::recurrents,
                inputs = late > 0 ? 0 : U::inputs;
  EarlyStep<U, X> early[kept_columns];
  float carries[kept_columns][U::states], dhs[kept_columns];
  const auto load_gradients = [&](std::int64_t n, float(&to)[U::states], float& dh_to) {
    for (int p = 0; p < U::states; ++p) to[p] = g.carry[p][n];
    dh_to = 0.0f;
    if (g.dh) dh_to = g.dh[n];
  };
  each_kept(h, [&](int k, std::int64_t column) {
    load_gradients(row * h + column, carries[k], dhs[k]);
    early[k].load(a, x, {row, column}, true);
  });
  GradientCompletion<late> complete_late(a.late_norm, row, h);
  GradientCompletion<recurrents> complete_u(a.u_norm, row, h);
  GradientCompletion<inputs> complete_x(a.x_norm, row, h);
  complete_late.load();
  complete_u.load();
  if (loads_x_early<U>) complete_x.load();
  const auto run = [&](std::int64_t column, const Step<float, U>& step, bool live,
                       float(&carry)[U::states], float dh, Step<float, U>& d) {
    carry[0] += dh;
    d = {};
    if (live) {
      U::backward(step, carry, d);
      for (int p = 0; p < U::vectors; ++p)
        g.vector_sums[row * g.sums_stride + p * h + column] += d.v[p];
      for (int p = 0; p < U::states; ++p) carry[p] = d.s[p];
    }
    store_planes<position_vectors_of<U>>(g.dpositions, row, column, h, d.position);
    for (int p = 0; p < U::states; ++p) g.carry[p][row * h + column] = carry[p];
  };
  Step<float, U> kept[kept_columns];
  each_kept(h, [&](int k, std::int64_t column) {
    run(column, early[k].step(), early[k].is_live(), carries[k], dhs[k], kept[k]);
  });
  each_further(h, [&](std::int64_t column) {
    bool live;
    const Step<float, U> step = load_all<U>(a, {row, column}, true, live);
    float states[U::states], dh;
    load_gradients(row * h + column, states, dh);
    Step<float, U> gradient;
    run(column, step, live, states, dh, gradient);
    store_dx<U>(g, row, column, h, gradient.x);
    store_planes<U::recurrents>(g.du, row, column, h, gradient.u);
    store_planes<U::late>(g.dlate, row, column, h, gradient.late);
  });
  complete_late.run(
      g.dlate, [&](int k) -> auto& { return kept[k].late; });
  complete_u.run(
      g.du, [&](int k) -> auto& { return kept[k].u; });
  if (!loads_x_early<U>) complete_x.load();
  complete_x.run(
      g.dx, [&](int k) -> auto& { return kept[k].x; });
  // Without completion, those of x and u are rounded by late_backward_kernel().
  Bfloat16 *const dx_rounded = inputs > 0 ? g.dx_rounded : nullptr, *const du_rounded =
                                                                        recurrents > 0
                                                                            ? g.du_rounded
                                                                            : nullptr;
  each_kept(h, [&](int k, std::int64_t column) {
    store_kept<U::inputs>(g.dx, dx_rounded, row, column, h, kept[k].x);
    store_kept<U::recurrents>(g.du, du_rounded, row, column, h, kept[k].u);
    store_kept<U::late>(g.dlate, g.dlate_rounded, row, column, h, kept[k].late);
  });
  round_further<late>(g.dlate, row, h, g.dlate_rounded);
  round_further<recurrents>(g.du, row, h, du_rounded);
  if (g.dx) round_further<inputs>(g.dx, row, h, dx_rounded);
}

template <class U>
__global__ void __launch_bounds__(max_row_block, 1)
    backward_kernel(UnitSteps a, UnitStepsGradient g) {
  with_inputs<U>(a, [&](auto* x) { backward<U>(a, x, g); });
}

template <class U>
__global__ void __launch_bounds__(max_row_block, 1)
    late_backward_kernel(UnitSteps a, const float* dlate_value, UnitStepsGradient g) {
  const std::int64_t row = blockIdx.x, h = a.width;
  EarlyStep<U, float> early[kept_columns];
  float dlates[kept_columns];
  Kept<U::inputs> dxs;
  Kept<U::recurrents> dus;
  each_kept(h, [&](int k, std::int64_t column) {
    early[k].load(a, a.x, {row, column}, true);
    dlates[k] = dlate_value[late_value_offset(a, {row, column})];
    load_planes<U::inputs>(g.dx, row, column, h, dxs[k]);
    load_planes<U::recurrents>(g.du, row, column, h, dus[k]);
  });
  GradientCompletion<U::recurrents> complete_u(a.u_norm, row, h);
  GradientCompletion<U::inputs> complete_x(a.x_norm, row, h);
  complete_u.load();
  // Adds to the gradients.
  const auto run = [&](std::int64_t column, const Step<float, U>& step, float dlate, auto& dx,
                       auto& du) {
    Step<float, U> d{};
    U::late_backward(step, dlate, d);
#pragma unroll
    for (int p = 0; p < U::inputs; ++p) dx[p] += d.x[p];
#pragma unroll
    for (int p = 0; p < U::recurrents; ++p) du[p] += d.u[p];
    for (int p = 0; p < U::states; ++p) g.carry[p][row * h + column] += d.s[p];
  };
  each_kept(h, [&](int k, std::int64_t column) {
    if (early[k].is_live()) run(column, early[k].step(), dlates[k], dxs[k], dus[k]);
  });
  each_further(h, [&](std::int64_t column) {
    const Channel channel{row, column};
    bool live;
    const Step<float, U> step = load_all<U>(a, channel, true, live);
    if (!live) return;
    float dx[at_least_one(U::inputs)], du[at_least_one(U::recurrents)];
    load_planes<U::inputs>(g.dx, row, column, h, dx);
    load_planes<U::recurrents>(g.du, row, column, h, du);
    run(column, step, dlate_value[late_value_offset(a, channel)], dx, du);
    store_planes<U::inputs>(g.dx, row, column, h, dx);
    store_planes<U::recurrents>(g.du, row, column, h, du);
  });
  complete_u.run(
      g.du, [&](int k) -> auto& { return dus[k]; });
  complete_x.load();
  complete_x.run(
      g.dx, [&](int k) -> auto& { return dxs[k]; });
  each_kept(h, [&](int k, std::int64_t column) {
    store_kept<U::inputs>(g.dx, g.dx_rounded, row, column, h, dxs[k]);
    store_kept<U::recurrents>(g.du, g.du_rounded, row, column, h, dus[k]);
  });
  round_further<U::recurrents>(g.du, row, h, g.du_rounded);
  round_further<U::inputs>(g.dx, row, h, g.dx_rounded);
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
