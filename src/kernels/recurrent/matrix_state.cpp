#include "kernels/recurrent/matrix_state.h"

#include "kernels/recurrent/matrix_scan.h"
#include "kernels/recurrent/rows.h"
#include "units/all.h"

namespace nmt::kernels {
namespace {

using namespace nmt::units;

template <class U>
void forward(const MatrixRecurrence& a, std::int64_t sentence, std::int64_t head) {
  MatrixScan<float, U>(a, sentence, head).forward();
}

template <class U>
void backward(const MatrixRecurrence& a, const MatrixGradient& g, std::int64_t sentence,
              std::int64_t head, float* sums, float* scratch) {
  MatrixScan<float, U>(a, sentence, head).backward(g, sums, scratch);
}

template <class U>
constexpr MatrixKernels kernels_of = {forward<U>, backward<U>};

template <class U>
constexpr MatrixState matrix_state_of() {
  MatrixState state;
  state.planes = U::planes;
  state.scalars = U::scalars;
  state.extras = U::extras;
  state.rows = U::rows;
  state.memory_vectors = U::memory_vectors;
  state.memory_scalars = U::memory_scalars;
  state.normalizes = U::normalizes;
  state.kernels = &kernels_of<U>;
  if constexpr (requires { U::bias_start(0, 0.0); }) state.bias_start = U::bias_start;
  if constexpr (requires { U::row_start(0); }) state.row_start = U::row_start;
  return state;
}
template <class U>
constexpr MatrixState matrix_state = matrix_state_of<U>();

template <class U>
constexpr Unit describe(const char* name, const char* variant) {
  Unit unit{};
  unit.name = name;
  unit.variant = variant;
  unit.inputs = U::inputs;
  unit.vectors = U::vectors;
  unit.states = 2;
  unit.bias = U::bias;
  unit.matrix_state = &matrix_state<U>;
  if constexpr (requires { U::vector_start(0, 0.0); })
    unit.vector_start = [](int n, double uniform, LayerPlace) {
      return U::vector_start(n, uniform);
    };
  return unit;
}

constexpr Unit table[] = {
#define NMT_UNIT(...)
#define NMT_MATRIX_UNIT(name, variant, ...) describe<__VA_ARGS__>(name, variant),
#include "units/units.def"
#undef NMT_UNIT
};

// The sums of a share: of vectors and rows.
std::int64_t sums_of(const MatrixRecurrence& a) {
  return (a.unit->vectors + a.unit->matrix_state->rows * a.state_width) * a.width;
}
// Numbers of a head at one step.
std::int64_t head_output(const MatrixRecurrence& a) {
  const MatrixState& state = *a.unit->matrix_state;
  return 3 * a.state_width + state.extras + state.head_memory(a.state_width);
}

// A head with this many numbers of states over all steps, about 15 us of work, is worth a thread of
// its own.
Shares shares_of(const Cpu& cpu, const MatrixRecurrence& a) {
  constexpr std::int64_t enough = 16 * 1024;
  const bool is_long = a.steps * a.width / a.heads * a.state_width >= enough;
  return Shares(cpu, a.batch * a.heads, is_long ? 1 : 4);
}

}  // namespace

std::span<const Unit> matrix_units() {
  return table;
}

std::int64_t matrix_record(const Cpu&, const MatrixRecurrence& a) {
  return a.batch * a.heads * a.steps * head_output(a);
}

std::int64_t matrix_scratch(const Cpu& cpu, const MatrixRecurrence& a) {
  return shares_of(cpu, a).count * (sums_of(a) + a.steps * head_output(a));
}

void matrix_forward(const Cpu& cpu, const MatrixRecurrence& a) {
  shares_of(cpu, a).run(cpu, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      a.unit->matrix_state->kernels->forward(a, i / a.heads, i % a.heads);
  });
}

void matrix_backward(const Cpu& cpu, const MatrixRecurrence& a, const MatrixGradient& g) {
  const Shares shares = shares_of(cpu, a);
  const std::int64_t sums = sums_of(a), vectors = a.unit->vectors * a.width;
  std::fill_n(g.scratch, shares.count * sums, 0.0f);
  shares.run(cpu, [&](std::int64_t share, std::int64_t begin, std::int64_t end) {
    float* scratch = g.scratch + shares.count * sums + share * a.steps * head_output(a);
    for (std::int64_t i = begin; i < end; ++i)
      a.unit->matrix_state->kernels->backward(a, g, i / a.heads, i % a.heads,
                                              g.scratch + share * sums, scratch);
  });
  add_shares(g.scratch, shares.count, sums, vectors, g.dvectors);
  add_shares(g.scratch + vectors, shares.count, sums, sums - vectors, g.drows);
}

}  // namespace nmt::kernels
