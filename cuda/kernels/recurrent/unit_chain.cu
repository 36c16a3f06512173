#include "core/error.h"
#include "cuda/kernels/recurrent/unit_row.h"
#include "cuda/kernels/recurrent/unit_table.h"

// Two element-wise units in turn, all steps of a channel in one thread; or one step with the layer
// normalization of both inputs, one block per row.

namespace nmt::cuda {
namespace {

constexpr unsigned threads = channel_threads;
// Steps whose loads are in flight while a thread computes. With one, oLRN has 64 registers on
// sm_90, so that a usual batch (128 sentences of width 1024) is one wave of 132 multiprocessors.
constexpr int ahead = 1;

// Of the backward pass, at once on a multiprocessor; four would spill registers on devices newer
// than Hopper.
constexpr int backward_blocks = is_newer ? 3 : channel_blocks;

// The shared vectors of one of the two units, and its step.
template <class U>
struct Half {
  float v[at_least_one(U::vectors)];

  __device__ Half(const UnitSteps& a, std::int64_t column) {
    load_planes<U::vectors>(a.vectors, 0, column, a.width, v);
  }
  // `state` becomes that after the step.
  __device__ __forceinline__ void forward(Step<float, U> step, float (&state)[U::states]) const {
    for (int p = 0; p < U::vectors; ++p) step.v[p] = v[p];
    for (int p = 0; p < U::states; ++p) step.s[p] = state[p];
    U::forward(step, state);
  }
};

__device__ __forceinline__ std::int64_t place(const UnitSteps& a, const Channel& at,
                                              std::int64_t i) {
  return (at.row + i * a.stride) * a.width + at.column;
}

template <class U>
__global__ void __launch_bounds__(threads, channel_blocks) forward_chain_kernel(UnitChain c) {
  const UnitSteps &a = c.lower, &b = c.higher;
  for (std::int64_t n = grid_index(); n < a.rows * a.width; n += grid_stride()) {
    const Channel at{n / a.width, n % a.width};
    const Half<U> lower(a, at.column), higher(b, at.column);
    Step<float, U> x[ahead], guide[ahead];
    bool live[ahead];
    const auto load = [&](std::int64_t i, int r) {
      load_step<U>(a, at, i, false, x[r], live[r]);
      load_step<U>(b, at, i, false, guide[r], live[r]);
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
        const Step<float, U> first = x[r], second = guide[r];
        const bool alive = live[r];
        if (i + ahead < a.steps) load(i + ahead, r);
        if (alive) lower.forward(first, state);
#pragma unroll
        for (int p = 0; p < U::states; ++p)
          if (c.keep)
            a.next[p][place(a, at, i)] = state[p];
          else if (i + 1 == a.steps)
            a.next[p][n] = state[p];
        if (alive) higher.forward(second, state);
#pragma unroll
        for (int p = 0; p < U::states; ++p) b.next[p][place(b, at, i)] = state[p];
        if (b.next_rounded) assign(b.next_rounded[place(b, at, i)], state[0]);
      }
    }
  }
}

template <class U>
__global__ void __launch_bounds__(max_row_block, 1) forward_row_kernel(UnitChain c) {
  const UnitSteps &a = c.lower, &b = c.higher;
  const std::int64_t row = blockIdx.x, h = a.width;
  complete<U::inputs>(a.raw_x, a.x_bias, a.x_norm, row, h);
  complete<U::inputs>(b.raw_x, b.x_bias, b.x_norm, row, h);
  for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x) {
    const Channel at{row, column};
    const std::int64_t n = row * h + column;
    const Half<U> lower(a, column), higher(b, column);
    Step<float, U> x, guide;
    bool live;
    load_step<U>(a, at, 0, false, x, live);
    load_step<U>(b, at, 0, false, guide, live);
    float state[U::states];
    for (int p = 0; p < U::states; ++p) state[p] = a.previous[p][n];
    if (live) lower.forward(x, state);
    for (int p = 0; p < U::states; ++p) a.next[p][n] = state[p];
    if (live) higher.forward(guide, state);
    for (int p = 0; p < U::states; ++p) b.next[p][n] = state[p];
    if (b.next_rounded) assign(b.next_rounded[n], state[0]);
  }
}

// A step back: `carry` becomes the gradient of the states before it.
template <class U>
__device__ __forceinline__ void step_back(const UnitSteps& a, const UnitStepsGradient& g,
                                          const Channel& at, std::int64_t i, bool alive,
                                          Step<float, U> step,
                                          const float (&v)[at_least_one(U::vectors)],
                                          float (&dv)[at_least_one(U::vectors)],
                                          float (&carry)[U::states]) {
  Step<float, U> d{};
  if (alive) {
    for (int p = 0; p < U::vectors; ++p) step.v[p] = v[p];
    U::backward(step, carry, d);
    for (int p = 0; p < U::vectors; ++p) dv[p] += d.v[p];
    for (int p = 0; p < U::states; ++p) carry[p] = d.s[p];
  }
  const std::int64_t row = at.row + i * a.stride;
  store_dx<U>(g, row, at.column, a.width, d.x);
  store_planes<position_vectors_of<U>>(g.dpositions, row, at.column, a.width, d.position);
}

template <class U>
__device__ __forceinline__ void add_vector_sums(const UnitStepsGradient& g, const Channel& at,
                                                std::int64_t h,
                                                const float (&dv)[at_least_one(U::vectors)]) {
#pragma unroll
  for (int p = 0; p < U::vectors; ++p)
    g.vector_sums[at.row * g.sums_stride + p * h + at.column] += dv[p];
}

template <class U>
__global__ void __launch_bounds__(threads, backward_blocks)
    backward_chain_kernel(UnitChain c, UnitStepsGradient da, UnitStepsGradient db) {
  const UnitSteps &a = c.lower, &b = c.higher;
  const std::int64_t h = a.width;
  for (std::int64_t n = grid_index(); n < a.rows * h; n += grid_stride()) {
    const Channel at{n / h, n % h};
    const Half<U> lower(a, at.column), higher(b, at.column);
    Step<float, U> x[ahead], guide[ahead];
    bool live[ahead];
    float dh[ahead];
    // The higher unit starts from the lower one's states, the lower one from those of the step
    // before.
    const auto load = [&](std::int64_t i, int r) {
      load_step<U>(a, at, i, false, x[r], live[r]);
      load_step<U>(b, at, i, false, guide[r], live[r]);
#pragma unroll
      for (int p = 0; p < U::states; ++p) {
        guide[r].s[p] = a.next[p][place(a, at, i)];
        x[r].s[p] = i == 0 ? a.previous[p][n] : b.next[p][place(b, at, i - 1)];
      }
      dh[r] = db.dh[place(b, at, i)];
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
        const Step<float, U> first = x[r], second = guide[r];
        const bool alive = live[r];
        carry[0] += dh[r];
        if (i >= ahead) load(i - ahead, r);
        step_back<U>(b, db, at, i, alive, second, higher.v, dv_higher, carry);
        step_back<U>(a, da, at, i, alive, first, lower.v, dv_lower, carry);
      }
    }
#pragma unroll
    for (int p = 0; p < U::states; ++p) da.carry[p][n] = carry[p];
    add_vector_sums<U>(da, at, h, dv_lower);
    add_vector_sums<U>(db, at, h, dv_higher);
  }
}

unsigned blocks(const Cuda& cuda, const UnitSteps& a) {
  return blocks_for(cuda, a.rows * a.width, threads);
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
    launch(forward_chain_kernel<U>, blocks(cuda, c.lower), threads, 0, cuda, c);
  }
  static void backward(const Cuda& cuda, const UnitChain& c, const UnitStepsGradient& lower,
                       const UnitStepsGradient& higher) {
    launch(backward_chain_kernel<U>, blocks(cuda, c.lower), threads, 0, cuda, c, lower, higher);
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
