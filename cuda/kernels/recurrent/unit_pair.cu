#include "core/error.h"
#include "cuda/kernels/recurrent/unit_row.h"
#include "cuda/kernels/recurrent/unit_table.h"

// The higher unit of a step and the lower unit of the next one in one kernel, a block per row:
// between them a conditional layer of an element-wise unit has no product.

namespace nmt::cuda {
namespace {

template <class U>
__global__ void __launch_bounds__(max_row_block, 1) forward_pair_kernel(UnitSteps a, UnitSteps b) {
  const std::int64_t row = blockIdx.x, h = a.width;
  complete<U::inputs>(a.raw_x, a.x_bias, a.x_norm, row, h);
  for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x) {
    const Channel at{row, column};
    const auto run = [&](const UnitSteps& steps, Step<float, U>& step, bool live) {
      float state[U::states];
      for (int p = 0; p < U::states; ++p) state[p] = step.s[p];
      if (live) U::forward(step, state);
      for (int p = 0; p < U::states; ++p) step.s[p] = steps.next[p][row * h + column] = state[p];
      if (steps.next_rounded) assign(steps.next_rounded[row * h + column], state[0]);
    };
    bool live;
    Step<float, U> first = load_all<U>(a, at, false, live);
    run(a, first, live);
    Step<float, U> second{};
    load_step<U>(b, at, 0, false, second, live);
    load_planes<U::vectors>(b.vectors, 0, column, h, second.v);
    for (int p = 0; p < U::states; ++p) second.s[p] = first.s[p];
    run(b, second, live);
  }
}

// A step back: `carry` becomes the gradient of the states before it.
template <class U>
__device__ __forceinline__ void step_back(const UnitSteps& a, const UnitStepsGradient& g,
                                          const Channel& at, float (&carry)[U::states]) {
  const std::int64_t h = a.width;
  bool live;
  const Step<float, U> step = load_all<U>(a, at, false, live);
  if (g.dh) carry[0] += g.dh[at.row * h + at.column];
  Step<float, U> d{};
  if (live) {
    U::backward(step, carry, d);
    for (int p = 0; p < U::vectors; ++p)
      g.vector_sums[at.row * g.sums_stride + p * h + at.column] += d.v[p];
    for (int p = 0; p < U::states; ++p) carry[p] = d.s[p];
  }
  store_dx<U>(g, at.row, at.column, h, d.x);
  store_planes<position_vectors_of<U>>(g.dpositions, at.row, at.column, h, d.position);
}

template <class U>
__global__ void __launch_bounds__(max_row_block, 1)
    backward_pair_kernel(UnitSteps a, UnitSteps b, UnitStepsGradient da, UnitStepsGradient db) {
  const std::int64_t row = blockIdx.x, h = a.width;
  for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x) {
    float carry[U::states];
    for (int p = 0; p < U::states; ++p) carry[p] = db.carry[p][row * h + column];
    step_back<U>(b, db, {row, column}, carry);
    step_back<U>(a, da, {row, column}, carry);
    for (int p = 0; p < U::states; ++p) db.carry[p][row * h + column] = carry[p];
  }
  complete_backward<U::inputs>(da.dx, a.x_norm, row, h);
  if (da.dx) round_row<U::inputs>(da.dx, row, h, da.dx_rounded);
}

template <class U>
struct Pair {
  static void forward(const Cuda& cuda, const UnitSteps& a, const UnitSteps& b) {
    launch(forward_pair_kernel<U>, static_cast<unsigned>(a.rows), row_block(a.width), 0, cuda, a,
           b);
  }
  static void backward(const Cuda& cuda, const UnitSteps& a, const UnitSteps& b,
                       const UnitStepsGradient& da, const UnitStepsGradient& db) {
    launch(backward_pair_kernel<U>, static_cast<unsigned>(a.rows), row_block(a.width), 0, cuda, a,
           b, da, db);
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
