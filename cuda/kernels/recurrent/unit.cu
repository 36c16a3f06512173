#include "core/error.h"
#include "cuda/kernels/recurrent/unit_ahead.h"
#include "cuda/kernels/recurrent/unit_table.h"

namespace nmt::cuda {
namespace {

using namespace nmt::units;

constexpr unsigned threads = channel_threads;

// Without products, a kernel takes all steps; else a single one.
template <class U>
constexpr bool takes_all_steps = U::recurrents + U::late == 0;
template <class U>
constexpr int min_blocks = takes_all_steps<U> ? channel_blocks : 1;

// Steps whose loads are in flight while a thread computes.
template <class U>
constexpr int steps_ahead = position_vectors_of<U> > 0 ? 3 : 4;
constexpr int steps_ahead_backward = 2;

template <class U, class X>
__device__ __forceinline__ void forward_steps(const UnitSteps& a, const X* x, std::int64_t n) {
  constexpr int ahead = steps_ahead<U>;
  const Channel channel{n / a.width, n % a.width};
  Ahead<U> ring[ahead];
  StepOffsets<U> early(a, channel, 0), now = early;
  const auto load = [&](std::int64_t i, int r) {
    ring[r].load(a, x, channel.column, i, early);
    early.forward(a);
  };
#pragma unroll
  for (int r = 0; r < ahead; ++r)
    if (r < a.steps) load(r, r);
  float v[at_least_one(U::vectors)], state[U::states];
  load_planes<U::vectors>(a.vectors, 0, channel.column, a.width, v);
#pragma unroll
  for (int p = 0; p < U::states; ++p) state[p] = a.previous[p][n];
  for (std::int64_t begin = 0; begin < a.steps; begin += ahead) {
#pragma unroll
    for (int r = 0; r < ahead; ++r) {
      const std::int64_t i = begin + r;
      if (i >= a.steps) break;
      if (ring[r].is_live()) {
        Step<float, U> step = ring[r].template step<X>(v);
#pragma unroll
        for (int p = 0; p < U::states; ++p) step.s[p] = state[p];
        U::forward(step, state);
      }
#pragma unroll
      for (int p = 0; p < U::states; ++p) a.next[p][now.channel] = state[p];
      if (a.next_rounded) assign(a.next_rounded[now.channel], state[0]);
      now.forward(a);
      if (i + ahead < a.steps) load(i + ahead, r);
    }
  }
}

template <class U>
__device__ __forceinline__ void forward_step(const UnitSteps& a, std::int64_t n) {
  const Channel channel{n / a.width, n % a.width};
  add_bias<U::recurrents>(a.u_bias, channel.row, channel.column, a.width, a.u);
  add_bias<U::late>(a.late_bias, channel.row, channel.column, a.width, a.late);
  bool live;
  const Step<float, U> step = load_all<U>(a, channel, true, live);
  float state[U::states];
#pragma unroll
  for (int p = 0; p < U::states; ++p) state[p] = step.s[p];
  if (live) U::forward(step, state);
#pragma unroll
  for (int p = 0; p < U::states; ++p) a.next[p][n] = state[p];
  if (a.next_rounded) assign(a.next_rounded[n], state[0]);
}

template <class U>
__global__ void __launch_bounds__(threads, min_blocks<U>) forward_kernel(UnitSteps a) {
  const std::int64_t n = grid_index();
  if (n >= a.rows * a.width) return;
  if constexpr (takes_all_steps<U>)
    with_inputs<U>(a, [&](auto* x) { forward_steps<U>(a, x, n); });
  else
    forward_step<U>(a, n);
}

// Recomputes the gates from the inputs of the forward pass.
template <class U, class X>
__device__ __forceinline__ void backward_steps(const UnitSteps& a, const X* x,
                                               const UnitStepsGradient& g, std::int64_t n) {
  constexpr int ahead = steps_ahead_backward;
  const std::int64_t h = a.width;
  const Channel channel{n / h, n % h};
  Ahead<U> ring[ahead];
  float before[ahead][U::states], dh[ahead];
  StepOffsets<U> early(a, channel, a.steps - 1), now = early;
  const auto load = [&](std::int64_t i, int r) {
    ring[r].load(a, x, channel.column, i, early);
    dh[r] = 0.0f;
    if (g.dh) dh[r] = g.dh[early.channel];
    early.back(a);
#pragma unroll
    for (int p = 0; p < U::states; ++p)
      before[r][p] = i == 0 ? a.previous[p][n] : a.next[p][early.channel];
  };
#pragma unroll
  for (int r = 0; r < ahead; ++r)
    if (r < a.steps) load(a.steps - 1 - r, r);
  float v[at_least_one(U::vectors)], dv[at_least_one(U::vectors)] = {}, carry[U::states];
  load_planes<U::vectors>(a.vectors, 0, channel.column, h, v);
#pragma unroll
  for (int p = 0; p < U::states; ++p) carry[p] = g.from_zero ? 0.0f : g.carry[p][n];
  for (std::int64_t begin = a.steps - 1; begin >= 0; begin -= ahead) {
#pragma unroll
    for (int r = 0; r < ahead; ++r) {
      const std::int64_t i = begin - r;
      if (i < 0) break;
      carry[0] += dh[r];
      Step<float, U> d{};
      if (ring[r].is_live()) {
        Step<float, U> step = ring[r].template step<X>(v);
#pragma unroll
        for (int p = 0; p < U::states; ++p) step.s[p] = before[r][p];
        U::backward(step, carry, d);
#pragma unroll
        for (int p = 0; p < U::vectors; ++p) dv[p] += d.v[p];
#pragma unroll
        for (int p = 0; p < U::states; ++p) carry[p] = d.s[p];
      }
      store_dx<U>(g, now, h, d.x);
      store_planes<position_vectors_of<U>>(g.dpositions, now.row, channel.column, h, d.position);
      now.back(a);
      if (i >= ahead) load(i - ahead, r);
    }
  }
#pragma unroll
  for (int p = 0; p < U::states; ++p) g.carry[p][n] = carry[p];
#pragma unroll
  for (int p = 0; p < U::vectors; ++p)
    g.vector_sums[channel.row * g.sums_stride + p * h + channel.column] += dv[p];
}

template <class U>
__device__ __forceinline__ void backward_step(const UnitSteps& a, const UnitStepsGradient& g,
                                              std::int64_t n) {
  const std::int64_t h = a.width;
  const Channel channel{n / h, n % h};
  bool live;
  const Step<float, U> step = load_all<U>(a, channel, true, live);
  float carry[U::states];
#pragma unroll
  for (int p = 0; p < U::states; ++p) carry[p] = g.from_zero ? 0.0f : g.carry[p][n];
  if (g.dh) carry[0] += g.dh[n];
  Step<float, U> d{};
  if (live) {
    U::backward(step, carry, d);
#pragma unroll
    for (int p = 0; p < U::states; ++p) carry[p] = d.s[p];
  }
  store_dx<U>(g, channel.row, channel.column, h, d.x);
  store_planes<U::recurrents>(g.du, channel.row, channel.column, h, d.u);
  store_planes<U::late>(g.dlate, channel.row, channel.column, h, d.late);
  store_planes<position_vectors_of<U>>(g.dpositions, channel.row, channel.column, h, d.position);
  round_planes<U::late>(g.dlate, channel.row, channel.column, h, g.dlate_rounded);
  if constexpr (U::late == 0) {
    if (g.dx) round_planes<U::inputs>(g.dx, channel.row, channel.column, h, g.dx_rounded);
    round_planes<U::recurrents>(g.du, channel.row, channel.column, h, g.du_rounded);
  }
#pragma unroll
  for (int p = 0; p < U::states; ++p) g.carry[p][n] = carry[p];
#pragma unroll
  for (int p = 0; p < U::vectors; ++p)
    g.vector_sums[channel.row * g.sums_stride + p * h + channel.column] += d.v[p];
}

template <class U>
__global__ void __launch_bounds__(threads, min_blocks<U>)
    backward_kernel(UnitSteps a, UnitStepsGradient g) {
  const std::int64_t n = grid_index();
  if (n >= a.rows * a.width) return;
  if constexpr (takes_all_steps<U>)
    with_inputs<U>(a, [&](auto* x) { backward_steps<U>(a, x, g, n); });
  else
    backward_step<U>(a, g, n);
}

template <class U>
__global__ void late_value_kernel(UnitSteps a, float* out) {
  for (std::int64_t n = grid_index(); n < a.rows * a.width; n += grid_stride()) {
    const Channel channel{n / a.width, n % a.width};
    add_bias<U::recurrents>(a.u_bias, channel.row, channel.column, a.width, a.u);
    bool live;
    const float value = U::late_value(load_all<U>(a, channel, false, live));
    out[late_value_offset(a, channel)] = value;
    if (a.late_value_rounded) assign(a.late_value_rounded[n], value);
  }
}

// Adds to dx, du and the carry. The gradient of a masked row stays zero.
template <class U>
__global__ void late_backward_kernel(UnitSteps a, const float* dlate_value, UnitStepsGradient g) {
  const std::int64_t h = a.width;
  for (std::int64_t n = grid_index(); n < a.rows * h; n += grid_stride()) {
    const Channel channel{n / h, n % h};
    bool live;
    const Step<float, U> step = load_all<U>(a, channel, true, live);
    if (live) {
      Step<float, U> d{};
      U::late_backward(step, dlate_value[late_value_offset(a, channel)], d);
      add_planes<U::inputs>(g.dx, channel.row, channel.column, h, d.x);
      add_planes<U::recurrents>(g.du, channel.row, channel.column, h, d.u);
      for (int p = 0; p < U::states; ++p) g.carry[p][n] += d.s[p];
    }
    round_planes<U::inputs>(g.dx, channel.row, channel.column, h, g.dx_rounded);
    round_planes<U::recurrents>(g.du, channel.row, channel.column, h, g.du_rounded);
  }
}

unsigned blocks(const UnitSteps& a) {
  return static_cast<unsigned>(divide_up(a.rows * a.width, threads));
}

template <class U>
struct Channels {
  static void check(const UnitSteps& a) {
    NMT_CHECK(takes_all_steps<U> || a.steps == 1, "{} steps of a unit with products", a.steps);
  }
  static void forward(const Cuda& cuda, const UnitSteps& a) {
    check(a);
    launch(forward_kernel<U>, blocks(a), threads, 0, cuda, a);
  }
  static void backward(const Cuda& cuda, const UnitSteps& a, const UnitStepsGradient& g) {
    check(a);
    launch(backward_kernel<U>, blocks(a), threads, 0, cuda, a, g);
  }
  static void late_value(const Cuda& cuda, const UnitSteps& a, float* out) {
    launch(late_value_kernel<U>, blocks(a), threads, 0, cuda, a, out);
  }
  static void late_backward(const Cuda& cuda, const UnitSteps& a, const float* dlate_value,
                            const UnitStepsGradient& g) {
    launch(late_backward_kernel<U>, blocks(a), threads, 0, cuda, a, dlate_value, g);
  }
};

}  // namespace

const UnitKernels& channel_kernels(const kernels::Unit& unit) {
  return kernels_in_table<Channels>(unit);
}

}  // namespace nmt::cuda
