#include "core/error.h"
#include "cuda/kernels/recurrent/unit_step.h"
#include "cuda/kernels/recurrent/unit_table.h"

namespace nmt::cuda {
namespace {

using namespace nmt::units;

constexpr unsigned threads = channel_threads;

// Whether the backward pass of a unit, of all steps in one kernel, is held to the registers of
// channel_blocks.
template <class U>
constexpr bool holds_registers = U::recurrents + U::late == 0 && U::states == 1;

// Steps whose loads are in flight while a thread computes.
template <class U>
constexpr int steps_ahead = U::recurrents + U::late > 0 ? 1
                            : is_newer                  ? 2
                                                        : 4;
template <class U>
constexpr int steps_ahead_backward = is_newer             ? 1
                                     : holds_registers<U> ? 3
                                                          : steps_ahead<U>;

// A unit with products takes single steps.
template <class U>
__device__ __forceinline__ std::int64_t steps_of(const UnitSteps& a) {
  return U::recurrents + U::late > 0 ? 1 : a.steps;
}

template <class U>
__global__ void forward_kernel(UnitSteps a) {
  constexpr int ahead = steps_ahead<U>;
  const std::int64_t h = a.width, steps = steps_of<U>(a);
  for (std::int64_t n = grid_index(); n < a.rows * h; n += grid_stride()) {
    const Channel at{n / h, n % h};
    add_bias<U::recurrents>(a.u_bias, at.row, at.column, h, a.u);
    add_bias<U::late>(a.late_bias, at.row, at.column, h, a.late);
    Step<float, U> ring[ahead];
    bool live[ahead];
#pragma unroll
    for (int r = 0; r < ahead; ++r)
      if (r < steps) load_step<U>(a, at, r, true, ring[r], live[r]);
    float v[at_least_one(U::vectors)], state[U::states];
    load_planes<U::vectors>(a.vectors, 0, at.column, h, v);
#pragma unroll
    for (int p = 0; p < U::states; ++p) state[p] = a.previous[p][n];
    for (std::int64_t begin = 0; begin < steps; begin += ahead) {
#pragma unroll
      for (int r = 0; r < ahead; ++r) {
        const std::int64_t i = begin + r;
        if (i >= steps) break;
        Step<float, U> step = ring[r];
        const bool alive = live[r];
        if (i + ahead < steps) load_step<U>(a, at, i + ahead, true, ring[r], live[r]);
        if (alive) {
          for (int p = 0; p < U::vectors; ++p) step.v[p] = v[p];
          for (int p = 0; p < U::states; ++p) step.s[p] = state[p];
          U::forward(step, state);
        }
#pragma unroll
        for (int p = 0; p < U::states; ++p)
          a.next[p][(at.row + i * a.stride) * h + at.column] = state[p];
        if (a.next_rounded)
          assign(a.next_rounded[(at.row + i * a.stride) * h + at.column], state[0]);
      }
    }
  }
}

// Recomputes the gates from the inputs of the forward pass.
template <class U>
__device__ __forceinline__ void backward_steps(const UnitSteps& a, const UnitStepsGradient& g) {
  constexpr int ahead = steps_ahead_backward<U>;
  const std::int64_t h = a.width, steps = steps_of<U>(a);
  for (std::int64_t n = grid_index(); n < a.rows * h; n += grid_stride()) {
    const Channel at{n / h, n % h};
    Step<float, U> ring[ahead];
    bool live[ahead];
    float dh[ahead];
    const auto load = [&](std::int64_t i, int r) {
      load_step<U>(a, at, i, true, ring[r], live[r]);
      load_states<U>(a, at, i, ring[r]);
      dh[r] = g.dh ? g.dh[(at.row + i * a.stride) * h + at.column] : 0.0f;
    };
#pragma unroll
    for (int r = 0; r < ahead; ++r)
      if (r < steps) load(steps - 1 - r, r);
    float v[at_least_one(U::vectors)], dv[at_least_one(U::vectors)] = {}, carry[U::states];
    load_planes<U::vectors>(a.vectors, 0, at.column, h, v);
#pragma unroll
    for (int p = 0; p < U::states; ++p) carry[p] = g.from_zero ? 0.0f : g.carry[p][n];
    for (std::int64_t begin = steps - 1; begin >= 0; begin -= ahead) {
#pragma unroll
      for (int r = 0; r < ahead; ++r) {
        const std::int64_t i = begin - r;
        if (i < 0) break;
        Step<float, U> step = ring[r];
        const bool alive = live[r];
        carry[0] += dh[r];
        if (i >= ahead) load(i - ahead, r);
        Step<float, U> d{};
        if (alive) {
          for (int p = 0; p < U::vectors; ++p) step.v[p] = v[p];
          U::backward(step, carry, d);
          for (int p = 0; p < U::vectors; ++p) dv[p] += d.v[p];
          for (int p = 0; p < U::states; ++p) carry[p] = d.s[p];
        }
        const std::int64_t row = at.row + i * a.stride;
        store_dx<U>(g, row, at.column, h, d.x);
        store_planes<U::recurrents>(g.du, row, at.column, h, d.u);
        store_planes<U::late>(g.dlate, row, at.column, h, d.late);
        store_planes<position_vectors_of<U>>(g.dpositions, row, at.column, h, d.position);
        round_planes<U::late>(g.dlate, row, at.column, h, g.dlate_rounded);
        if constexpr (U::recurrents > 0 && U::late == 0) {
          if (g.dx) round_planes<U::inputs>(g.dx, row, at.column, h, g.dx_rounded);
          round_planes<U::recurrents>(g.du, row, at.column, h, g.du_rounded);
        }
      }
    }
#pragma unroll
    for (int p = 0; p < U::states; ++p) g.carry[p][n] = carry[p];
#pragma unroll
    for (int p = 0; p < U::vectors; ++p)
      g.vector_sums[at.row * g.sums_stride + p * h + at.column] += dv[p];
  }
}

template <class U>
__global__ void backward_kernel(UnitSteps a, UnitStepsGradient g) {
  backward_steps<U>(a, g);
}
template <class U>
__global__ void __launch_bounds__(threads, channel_blocks)
    register_bound_backward_kernel(UnitSteps a, UnitStepsGradient g) {
  backward_steps<U>(a, g);
}

template <class U>
__global__ void late_value_kernel(UnitSteps a, float* out) {
  for (std::int64_t n = grid_index(); n < a.rows * a.width; n += grid_stride()) {
    const Channel at{n / a.width, n % a.width};
    add_bias<U::recurrents>(a.u_bias, at.row, at.column, a.width, a.u);
    bool live;
    const float value = U::late_value(load_all<U>(a, at, false, live));
    out[late_place(a, at)] = value;
    if (a.late_value_rounded) assign(a.late_value_rounded[n], value);
  }
}

// Adds to dx, du and the carry. The gradient of a masked row stays zero.
template <class U>
__global__ void late_backward_kernel(UnitSteps a, const float* dlate_value, UnitStepsGradient g) {
  const std::int64_t h = a.width;
  for (std::int64_t n = grid_index(); n < a.rows * h; n += grid_stride()) {
    const Channel at{n / h, n % h};
    bool live;
    const Step<float, U> step = load_all<U>(a, at, true, live);
    if (live) {
      Step<float, U> d{};
      U::late_backward(step, dlate_value[late_place(a, at)], d);
      add_planes<U::inputs>(g.dx, at.row, at.column, h, d.x);
      add_planes<U::recurrents>(g.du, at.row, at.column, h, d.u);
      for (int p = 0; p < U::states; ++p) g.carry[p][n] += d.s[p];
    }
    round_planes<U::inputs>(g.dx, at.row, at.column, h, g.dx_rounded);
    round_planes<U::recurrents>(g.du, at.row, at.column, h, g.du_rounded);
  }
}

unsigned blocks(const Cuda& cuda, const UnitSteps& a) {
  return blocks_for(cuda, a.rows * a.width, threads);
}

template <class U>
struct Channels {
  static void check(const UnitSteps& a) {
    NMT_CHECK(U::recurrents + U::late == 0 || a.steps == 1, "{} steps of a unit with products",
              a.steps);
  }
  static void forward(const Cuda& cuda, const UnitSteps& a) {
    check(a);
    launch(forward_kernel<U>, blocks(cuda, a), threads, 0, cuda, a);
  }
  static void backward(const Cuda& cuda, const UnitSteps& a, const UnitStepsGradient& g) {
    check(a);
    if constexpr (holds_registers<U>)
      launch(register_bound_backward_kernel<U>, blocks(cuda, a), threads, 0, cuda, a, g);
    else
      launch(backward_kernel<U>, blocks(cuda, a), threads, 0, cuda, a, g);
  }
  static void late_value(const Cuda& cuda, const UnitSteps& a, float* out) {
    launch(late_value_kernel<U>, blocks(cuda, a), threads, 0, cuda, a, out);
  }
  static void late_backward(const Cuda& cuda, const UnitSteps& a, const float* dlate_value,
                            const UnitStepsGradient& g) {
    launch(late_backward_kernel<U>, blocks(cuda, a), threads, 0, cuda, a, dlate_value, g);
  }
};

}  // namespace

const UnitKernels& channel_kernels(const kernels::Unit& unit) {
  return kernels_in_table<Channels>(unit);
}

}  // namespace nmt::cuda
