#include "core/error.h"
#include "cuda/kernels/recurrent/unit_row.h"
#include "cuda/kernels/recurrent/unit_table.h"

// The higher unit of a step and the lower unit of the next one in one kernel, a block per row:
// between them a conditional layer of an element-wise unit has no product.

namespace nmt::cuda {
namespace {

// x: the inputs of the lower unit, b. Those of the higher one are float32.
template <class U, class X>
__device__ __forceinline__ void forward_pair(const UnitSteps& a, const UnitSteps& b, const X* x) {
  const std::int64_t row = blockIdx.x, h = a.width;
  EarlyStep<U, float> early[kept_columns];
  EarlyStep<U, X> next[kept_columns];
  each_kept(h, [&](int k, std::int64_t column) {
    early[k].load(a, a.x, {row, column}, false);
    next[k].load(b, x, {row, column}, false, false);
  });
  Completion<U::inputs> completion(a.raw_x, a.x_bias, a.x_norm, row, h);
  completion.load();
  const auto run = [&](const UnitSteps& steps, std::int64_t column, Step<float, U>& step,
                       bool live) {
    float state[U::states];
    for (int p = 0; p < U::states; ++p) state[p] = step.s[p];
    if (live) U::forward(step, state);
    for (int p = 0; p < U::states; ++p) step.s[p] = steps.next[p][row * h + column] = state[p];
    if (steps.next_rounded) assign(steps.next_rounded[row * h + column], state[0]);
  };
  const auto run_both = [&](std::int64_t column, Step<float, U>& first, bool first_live,
                            Step<float, U> second, bool second_live) {
    run(a, column, first, first_live);
    for (int p = 0; p < U::states; ++p) second.s[p] = first.s[p];
    run(b, column, second, second_live);
  };
  Step<float, U> first[kept_columns];
  each_kept(h, [&](int k, std::int64_t) { first[k] = early[k].step(); });
  completion.run([&](int k) -> auto& { return first[k].x; });
  each_kept(h, [&](int k, std::int64_t column) {
    run_both(column, first[k], early[k].is_live(), next[k].step(), next[k].is_live());
  });
  each_further(h, [&](std::int64_t column) {
    const Channel channel{row, column};
    bool first_live, second_live;
    Step<float, U> step = load_all<U>(a, channel, false, first_live), second{};
    load_step<U>(b, channel, 0, false, second, second_live);
    load_planes<U::vectors>(b.vectors, 0, column, h, second.v);
    run_both(column, step, first_live, second, second_live);
  });
}

template <class U>
__global__ void __launch_bounds__(max_row_block, 1) forward_pair_kernel(UnitSteps a, UnitSteps b) {
  with_inputs<U>(b, [&](auto* x) { forward_pair<U>(a, b, x); });
}

// The backward pass of a step. `carry` becomes the gradient of the states before the step.
template <class U>
__device__ __forceinline__ void step_back(const UnitStepsGradient& g, const Channel& channel,
                                          std::int64_t h, const Step<float, U>& step, bool live,
                                          float (&carry)[U::states], Step<float, U>& d) {
  d = {};
  if (live) {
    U::backward(step, carry, d);
    for (int p = 0; p < U::vectors; ++p)
      g.vector_sums[channel.row * g.sums_stride + p * h + channel.column] += d.v[p];
    for (int p = 0; p < U::states; ++p) carry[p] = d.s[p];
  }
  store_planes<position_vectors_of<U>>(g.dpositions, channel.row, channel.column, h, d.position);
}

template <class U, class X>
__device__ __forceinline__ void backward_pair(const UnitSteps& a, const UnitSteps& b, const X* x,
                                              const UnitStepsGradient& da,
                                              const UnitStepsGradient& db) {
  const std::int64_t row = blockIdx.x, h = a.width;
  EarlyStep<U, float> first[kept_columns];
  EarlyStep<U, X> second[kept_columns];
  float carries[kept_columns][U::states], dhs[kept_columns];
  const auto load_gradients = [&](std::int64_t column, float(&to)[U::states], float& dh_to) {
    for (int p = 0; p < U::states; ++p) to[p] = db.carry[p][row * h + column];
    dh_to = 0.0f;
    if (da.dh) dh_to = da.dh[row * h + column];
  };
  each_kept(h, [&](int k, std::int64_t column) {
    load_gradients(column, carries[k], dhs[k]);
    second[k].load(b, x, {row, column}, false);
    first[k].load(a, a.x, {row, column}, false);
  });
  GradientCompletion<U::inputs> completion(a.x_norm, row, h);
  completion.load();
  // d: the gradients of the higher unit's step.
  const auto run = [&](std::int64_t column, const Step<float, U>& lower, bool lower_live,
                       const Step<float, U>& higher, bool higher_live, float(&carry)[U::states],
                       float dh, Step<float, U>& d) {
    step_back<U>(db, {row, column}, h, lower, lower_live, carry, d);
    store_dx<U>(db, row, column, h, d.x);
    carry[0] += dh;
    step_back<U>(da, {row, column}, h, higher, higher_live, carry, d);
    for (int p = 0; p < U::states; ++p) db.carry[p][row * h + column] = carry[p];
  };
  Kept<U::inputs> dx;
  each_kept(h, [&](int k, std::int64_t column) {
    Step<float, U> d;
    run(column, second[k].step(), second[k].is_live(), first[k].step(), first[k].is_live(),
        carries[k], dhs[k], d);
    for (int p = 0; p < U::inputs; ++p) dx[k][p] = d.x[p];
  });
  each_further(h, [&](std::int64_t column) {
    const Channel channel{row, column};
    bool lower_live, higher_live;
    const Step<float, U> lower = load_all<U>(b, channel, false, lower_live),
                         higher = load_all<U>(a, channel, false, higher_live);
    float states[U::states], dh;
    load_gradients(column, states, dh);
    Step<float, U> d;
    run(column, lower, lower_live, higher, higher_live, states, dh, d);
    store_dx<U>(da, row, column, h, d.x);
  });
  completion.run(
      da.dx, [&](int k) -> auto& { return dx[k]; });
  each_kept(h, [&](int k, std::int64_t column) {
    store_kept<U::inputs>(da.dx, da.dx_rounded, row, column, h, dx[k]);
  });
  if (da.dx) round_further<U::inputs>(da.dx, row, h, da.dx_rounded);
}

template <class U>
__global__ void __launch_bounds__(max_row_block, 1)
    backward_pair_kernel(UnitSteps a, UnitSteps b, UnitStepsGradient da, UnitStepsGradient db) {
  with_inputs<U>(b, [&](auto* x) { backward_pair<U>(a, b, x, da, db); });
}

unsigned blocks(const UnitSteps& a) {
  NMT_CHECK(a.x, "the higher unit of a pair has inputs in bfloat16");
  return static_cast<unsigned>(a.rows);
}

template <class U>
struct Pair {
  static void forward(const Cuda& cuda, const UnitSteps& a, const UnitSteps& b) {
    launch(forward_pair_kernel<U>, blocks(a), row_block(a.width), 0, cuda, a, b);
  }
  static void backward(const Cuda& cuda, const UnitSteps& a, const UnitSteps& b,
                       const UnitStepsGradient& da, const UnitStepsGradient& db) {
    launch(backward_pair_kernel<U>, blocks(a), row_block(a.width), 0, cuda, a, b, da, db);
  }
};

template <class U>
constexpr PairKernels describe_pair() {
  if constexpr (U::recurrents + U::late == 0)
    return {Pair<U>::forward, Pair<U>::backward};
  else
    return {nullptr, nullptr};
}

}  // namespace

const PairKernels& pair_kernels(const kernels::Unit& unit) {
  static constexpr PairKernels table[] = {
#define NMT_UNIT(name, variant, ...) describe_pair<__VA_ARGS__>(),
#include "units/units.def"
#undef NMT_UNIT
  };
  const PairKernels& found = table[number_of(unit)];
  NMT_CHECK(found.forward, "unit {}: it has a recurrent product in every step", unit.name);
  return found;
}

}  // namespace nmt::cuda
