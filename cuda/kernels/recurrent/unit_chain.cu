#include "core/error.h"
#include "cuda/kernels/recurrent/unit_ahead.h"
#include "cuda/kernels/recurrent/unit_row.h"
#include "cuda/kernels/recurrent/unit_table.h"

// Two element-wise units in turn, all steps of a channel in one thread; or one step with the layer
// normalization of both inputs, one block per row.

namespace nmt::cuda {
namespace {

constexpr unsigned threads = channel_threads;
// The compiler takes more registers for the backward pass on devices newer than Hopper.
constexpr int backward_blocks = is_newer ? 4 : channel_blocks;
// Steps whose loads are in flight while a thread computes. A unit with one state alone (lrn, olrn)
// has registers for two backward.
constexpr int steps_ahead = 2;
template <class U>
constexpr int steps_ahead_backward =
    !is_newer && U::states + U::vectors + position_vectors_of<U> == 1 ? 2 : 1;

// The shared vectors and the step of one of the two units.
template <class U>
struct Half {
  float v[at_least_one(U::vectors)];

  __device__ Half(const UnitSteps& a, std::int64_t column) {
    load_planes<U::vectors>(a.vectors, 0, column, a.width, v);
  }
  // Replaces `state` by the state after the step.
  __device__ __forceinline__ void forward(Step<float, U> step, float (&state)[U::states]) const {
    for (int p = 0; p < U::vectors; ++p) step.v[p] = v[p];
    for (int p = 0; p < U::states; ++p) step.s[p] = state[p];
    U::forward(step, state);
  }
};

template <class U, class X>
__device__ __forceinline__ void forward_chain(const UnitChain& c, const X* x, const X* higher_x,
                                              std::int64_t n) {
  constexpr int ahead = steps_ahead;
  const UnitSteps &a = c.lower, &b = c.higher;
  const Channel channel{n / a.width, n % a.width};
  const Half<U> lower(a, channel.column), higher(b, channel.column);
  Ahead<U> first[ahead], second[ahead];
  StepOffsets<U> early(a, channel, 0), now = early;
  const auto load = [&](std::int64_t i, int r) {
    first[r].load(a, x, channel.column, i, early);
    second[r].load(b, higher_x, channel.column, i, early);
    early.forward(a);
  };
#pragma unroll
  for (int r = 0; r < ahead; ++r)
    if (r < a.steps) load(r, r);
  float state[U::states];
#pragma unroll
  for (int p = 0; p < U::states; ++p) state[p] = a.previous[p][n];
  for (std::int64_t begin = 0; begin < a.steps; begin += ahead) {
#pragma unroll
    for (int r = 0; r < ahead; ++r) {
      const std::int64_t i = begin + r;
      if (i >= a.steps) break;
      const bool alive = first[r].is_live();
      if (alive) lower.forward(first[r].template step<X>(lower.v), state);
#pragma unroll
      for (int p = 0; p < U::states; ++p)
        if (c.keep)
          a.next[p][now.channel] = state[p];
        else if (i + 1 == a.steps)
          a.next[p][n] = state[p];
      if (alive) higher.forward(second[r].template step<X>(higher.v), state);
#pragma unroll
      for (int p = 0; p < U::states; ++p) b.next[p][now.channel] = state[p];
      if (b.next_rounded) assign(b.next_rounded[now.channel], state[0]);
      now.forward(a);
      if (i + ahead < a.steps) load(i + ahead, r);
    }
  }
}

template <class U>
__global__ void __launch_bounds__(threads, channel_blocks) forward_chain_kernel(UnitChain c) {
  const std::int64_t n = grid_index();
  if (n >= c.lower.rows * c.lower.width) return;
  if (c.lower.x)
    forward_chain<U>(c, c.lower.x, c.higher.x, n);
  else
    forward_chain<U>(c, c.lower.x_rounded, c.higher.x_rounded, n);
}

template <class U>
__global__ void __launch_bounds__(max_row_block, 1) forward_row_kernel(UnitChain c) {
  const UnitSteps &a = c.lower, &b = c.higher;
  const std::int64_t row = blockIdx.x, h = a.width;
  EarlyStep<U, float> early_x[kept_columns], early_higher_x[kept_columns];
  each_kept(h, [&](int k, std::int64_t column) {
    early_x[k].load(a, a.x, {row, column}, false);
    early_higher_x[k].load(b, b.x, {row, column}, false, false);
  });
  Completion<U::inputs> complete_x(a.raw_x, a.x_bias, a.x_norm, row, h),
      complete_higher_x(b.raw_x, b.x_bias, b.x_norm, row, h);
  complete_x.load();
  complete_higher_x.load();
  const auto run = [&](std::int64_t column, bool live, const Step<float, U>& x,
                       Step<float, U> higher_x) {
    const std::int64_t n = row * h + column;
    float state[U::states];
    for (int p = 0; p < U::states; ++p) state[p] = x.s[p];
    if (live) U::forward(x, state);
    for (int p = 0; p < U::states; ++p) higher_x.s[p] = a.next[p][n] = state[p];
    if (live) U::forward(higher_x, state);
    for (int p = 0; p < U::states; ++p) b.next[p][n] = state[p];
    if (b.next_rounded) assign(b.next_rounded[n], state[0]);
  };
  Step<float, U> x[kept_columns], higher_x[kept_columns];
  each_kept(h, [&](int k, std::int64_t) {
    x[k] = early_x[k].step();
    higher_x[k] = early_higher_x[k].step();
  });
  complete_x.run([&](int k) -> auto& { return x[k].x; });
  complete_higher_x.run([&](int k) -> auto& { return higher_x[k].x; });
  each_kept(
      h, [&](int k, std::int64_t column) { run(column, early_x[k].is_live(), x[k], higher_x[k]); });
  each_further(h, [&](std::int64_t column) {
    bool live;
    const Step<float, U> lower = load_all<U>(a, {row, column}, false, live);
    Step<float, U> higher{};
    load_step<U>(b, {row, column}, 0, false, higher, live);
    load_planes<U::vectors>(b.vectors, 0, column, h, higher.v);
    run(column, live, lower, higher);
  });
}

// The backward pass of a step. `carry` becomes the gradient of the states before the step.
template <class U>
__device__ __forceinline__ void step_back(const UnitSteps& a, const UnitStepsGradient& g,
                                          const Channel& channel, const StepOffsets<U>& offsets,
                                          bool alive, Step<float, U> step,
                                          const float (&before)[U::states],
                                          float (&dv)[at_least_one(U::vectors)],
                                          float (&carry)[U::states]) {
  Step<float, U> d{};
  if (alive) {
#pragma unroll
    for (int p = 0; p < U::states; ++p) step.s[p] = before[p];
    U::backward(step, carry, d);
#pragma unroll
    for (int p = 0; p < U::vectors; ++p) dv[p] += d.v[p];
#pragma unroll
    for (int p = 0; p < U::states; ++p) carry[p] = d.s[p];
  }
  store_dx<U>(g, offsets, a.width, d.x);
  store_planes<position_vectors_of<U>>(g.dpositions, offsets.row, channel.column, a.width,
                                       d.position);
}

template <class U>
__device__ __forceinline__ void add_vector_sums(const UnitStepsGradient& g, const Channel& channel,
                                                std::int64_t h,
                                                const float (&dv)[at_least_one(U::vectors)]) {
#pragma unroll
  for (int p = 0; p < U::vectors; ++p)
    g.vector_sums[channel.row * g.sums_stride + p * h + channel.column] += dv[p];
}

template <class U, class X>
__device__ __forceinline__ void backward_chain(const UnitChain& c, const X* x, const X* higher_x,
                                               const UnitStepsGradient& da,
                                               const UnitStepsGradient& db, std::int64_t n) {
  constexpr int ahead = steps_ahead_backward<U>;
  const UnitSteps &a = c.lower, &b = c.higher;
  const std::int64_t h = a.width;
  const Channel channel{n / h, n % h};
  const Half<U> lower(a, channel.column), higher(b, channel.column);
  Ahead<U> first[ahead], second[ahead];
  float before_first[ahead][U::states], before_second[ahead][U::states], dh[ahead];
  StepOffsets<U> early(a, channel, a.steps - 1), now = early;
  // The higher unit starts from the lower one's states, the lower one from those of the step
  // before.
  const auto load = [&](std::int64_t i, int r) {
    first[r].load(a, x, channel.column, i, early);
    second[r].load(b, higher_x, channel.column, i, early);
#pragma unroll
    for (int p = 0; p < U::states; ++p) before_second[r][p] = a.next[p][early.channel];
    dh[r] = db.dh[early.channel];
    early.back(a);
#pragma unroll
    for (int p = 0; p < U::states; ++p)
      before_first[r][p] = i == 0 ? a.previous[p][n] : b.next[p][early.channel];
  };
#pragma unroll
  for (int r = 0; r < ahead; ++r)
    if (r < a.steps) load(a.steps - 1 - r, r);
  float dv_lower[at_least_one(U::vectors)] = {}, dv_higher[at_least_one(U::vectors)] = {},
        carry[U::states];
#pragma unroll
  for (int p = 0; p < U::states; ++p) carry[p] = da.from_zero ? 0.0f : da.carry[p][n];
  for (std::int64_t begin = a.steps - 1; begin >= 0; begin -= ahead) {
#pragma unroll
    for (int r = 0; r < ahead; ++r) {
      const std::int64_t i = begin - r;
      if (i < 0) break;
      const bool alive = first[r].is_live();
      carry[0] += dh[r];
      step_back<U>(b, db, channel, now, alive, second[r].template step<X>(higher.v),
                   before_second[r], dv_higher, carry);
      step_back<U>(a, da, channel, now, alive, first[r].template step<X>(lower.v), before_first[r],
                   dv_lower, carry);
      now.back(a);
      if (i >= ahead) load(i - ahead, r);
    }
  }
#pragma unroll
  for (int p = 0; p < U::states; ++p) da.carry[p][n] = carry[p];
  add_vector_sums<U>(da, channel, h, dv_lower);
  add_vector_sums<U>(db, channel, h, dv_higher);
}

template <class U>
__global__ void __launch_bounds__(threads, backward_blocks)
    backward_chain_kernel(UnitChain c, UnitStepsGradient da, UnitStepsGradient db) {
  const std::int64_t n = grid_index();
  if (n >= c.lower.rows * c.lower.width) return;
  if (c.lower.x)
    backward_chain<U>(c, c.lower.x, c.higher.x, da, db, n);
  else
    backward_chain<U>(c, c.lower.x_rounded, c.higher.x_rounded, da, db, n);
}

// Of a chain with a thread for each channel.
unsigned blocks(const UnitChain& c) {
  NMT_CHECK(!c.lower.x == !c.higher.x, "two units with inputs in float32 and in bfloat16");
  return static_cast<unsigned>(divide_up(c.lower.rows * c.lower.width, threads));
}

template <class U>
struct Chain {
  static void forward(const Cuda& cuda, const UnitChain& c) {
    if (c.lower.raw_x || c.higher.raw_x) {
      NMT_CHECK(c.lower.steps == 1 && c.lower.raw_x && c.higher.raw_x,
                "{} steps of two units with an input to be normalized", c.lower.steps);
      return launch(forward_row_kernel<U>, static_cast<unsigned>(c.lower.rows),
                    row_block(c.lower.width), 0, cuda, c);
    }
    launch(forward_chain_kernel<U>, blocks(c), threads, 0, cuda, c);
  }
  static void backward(const Cuda& cuda, const UnitChain& c, const UnitStepsGradient& lower,
                       const UnitStepsGradient& higher) {
    launch(backward_chain_kernel<U>, blocks(c), threads, 0, cuda, c, lower, higher);
  }
};

template <class U>
constexpr ChainKernels describe_chain() {
  if constexpr (U::recurrents + U::late == 0)
    return {Chain<U>::forward, Chain<U>::backward};
  else
    return {nullptr, nullptr};
}

}  // namespace

const ChainKernels& chain_kernels(const kernels::Unit& unit) {
  static constexpr ChainKernels table[] = {
#define NMT_UNIT(name, variant, ...) describe_chain<__VA_ARGS__>(),
#include "units/units.def"
#undef NMT_UNIT
  };
  const ChainKernels& found = table[number_of(unit)];
  NMT_CHECK(found.forward, "unit {}: it has a recurrent product in every step", unit.name);
  return found;
}

}  // namespace nmt::cuda
