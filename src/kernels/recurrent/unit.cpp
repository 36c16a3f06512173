#include "kernels/recurrent/unit.h"

#include "kernels/recurrent/prefetch.h"
#include "units/all.h"

#include <algorithm>
#include <iterator>

namespace nmt::kernels {
namespace {

using namespace nmt::units;

template <class U>
[[gnu::always_inline]] inline Step<float, U> load(const UnitStep& a, std::int64_t r, std::int64_t j,
                                                  bool with_late) {
  const std::int64_t h = a.width;
  Step<float, U> step;
  for (int p = 0; p < U::inputs; ++p) step.x[p] = a.x[(r * U::inputs + p) * h + j];
  for (int p = 0; p < U::recurrents; ++p) step.u[p] = a.u[(r * U::recurrents + p) * h + j];
  for (int p = 0; p < U::late; ++p)
    step.late[p] = with_late ? a.late[(r * U::late + p) * h + j] : 0.0f;
  for (int p = 0; p < U::vectors; ++p) step.v[p] = a.vectors[p * h + j];
  for (int p = 0; p < position_vectors_of<U>; ++p) step.position[p] = a.position[p * h + j];
  for (int p = 0; p < U::states; ++p) step.s[p] = a.previous[p][r * h + j];
  return step;
}

// The channels [begin, end) of a plane per row, of `planes` planes per row: those of row r.
[[gnu::always_inline]] inline void prefetch_planes(const UnitStep& a, const float* from, int planes,
                                                   std::int64_t r, std::int64_t begin,
                                                   std::int64_t end) {
  for (int p = 0; p < planes; ++p) prefetch(from + (r * planes + p) * a.width + begin, end - begin);
}
[[gnu::always_inline]] inline void prefetch_output_planes(const UnitStep& a, float* to, int planes,
                                                          std::int64_t r, std::int64_t begin,
                                                          std::int64_t end) {
  for (int p = 0; p < planes; ++p)
    prefetch_output(to + (r * planes + p) * a.width + begin, end - begin);
}

// The channels [first, end) of `planes` planes of a row, which begins at `row`.
template <class Body>
void each_plane(const UnitStep& a, int planes, std::int64_t row, Body&& body) {
  const std::int64_t n = a.width - a.first_channel - a.skipped_after;
  for (int p = 0; p < planes; ++p) body((row * planes + p) * a.width + a.first_channel, n);
}

template <class U>
void forward(const UnitStep& a) {
  const std::int64_t h = a.width, end = h - a.skipped_after;
  for (std::int64_t r = 0; r < a.rows; ++r) {
    if (a.mask && a.mask[r] == 0.0f) {
      each_plane(a, 1, r, [&](std::int64_t at, std::int64_t n) {
        for (int p = 0; p < U::states; ++p) std::copy_n(a.previous[p] + at, n, a.next[p] + at);
      });
      continue;
    }
    const std::int64_t ahead = r + 1 < a.rows ? r + 1 : a.stride;
    each_block(a.first_channel, end, [&](std::int64_t from, std::int64_t to) {
      prefetch_planes(a, a.x, U::inputs, ahead, from, to);
      for (int p = 0; p < U::states; ++p) prefetch_output_planes(a, a.next[p], 1, ahead, from, to);
#pragma omp simd
      for (std::int64_t j = from; j < to; ++j) {
        const Step<float, U> step = load<U>(a, r, j, true);
        float next[U::states];
        U::forward(step, next);
        for (int p = 0; p < U::states; ++p) a.next[p][r * h + j] = next[p];
      }
    });
  }
}

template <class U>
void backward(const UnitStep& a, const UnitStepGradient& g) {
  const std::int64_t h = a.width, end = h - a.skipped_after;
  for (std::int64_t r = 0; r < a.rows; ++r) {
    if (a.mask && a.mask[r] == 0.0f) {
      const auto clear = [&](int planes, float* to) {
        each_plane(a, planes, r,
                   [&](std::int64_t at, std::int64_t n) { std::fill_n(to + at, n, 0.0f); });
      };
      clear(U::inputs, g.dx);
      if constexpr (U::recurrents > 0) clear(U::recurrents, g.du);
      if constexpr (U::late > 0) clear(U::late, g.dlate);
      each_plane(a, 1, r, [&](std::int64_t at, std::int64_t n) {
        for (int p = 0; p < U::states; ++p)
          if (g.dprevious[p] != g.dnext[p]) std::copy_n(g.dnext[p] + at, n, g.dprevious[p] + at);
      });
      continue;
    }
    const std::int64_t ahead = r + 1 < a.rows ? r + 1 : -a.stride;
    each_block(a.first_channel, end, [&](std::int64_t from, std::int64_t to) {
      prefetch_planes(a, a.x, U::inputs, ahead, from, to);
      if constexpr (U::recurrents > 0) prefetch_planes(a, a.u, U::recurrents, ahead, from, to);
      if constexpr (U::late > 0) prefetch_planes(a, a.late, U::late, ahead, from, to);
      for (int p = 0; p < U::states; ++p) prefetch_planes(a, a.previous[p], 1, ahead, from, to);
      prefetch_output_planes(a, g.dx, U::inputs, ahead, from, to);
#pragma omp simd
      for (std::int64_t j = from; j < to; ++j) {
        const Step<float, U> step = load<U>(a, r, j, true);
        float dnext[U::states];
        for (int p = 0; p < U::states; ++p) dnext[p] = g.dnext[p][r * h + j];
        Step<float, U> d;
        U::backward(step, dnext, d);
        for (int p = 0; p < U::inputs; ++p) g.dx[(r * U::inputs + p) * h + j] = d.x[p];
        for (int p = 0; p < U::recurrents; ++p) g.du[(r * U::recurrents + p) * h + j] = d.u[p];
        for (int p = 0; p < U::late; ++p) g.dlate[(r * U::late + p) * h + j] = d.late[p];
        for (int p = 0; p < U::vectors; ++p) g.dvectors[p * h + j] += d.v[p];
        for (int p = 0; p < position_vectors_of<U>; ++p) g.dposition[p * h + j] += d.position[p];
        for (int p = 0; p < U::states; ++p) g.dprevious[p][r * h + j] = d.s[p];
      }
    });
  }
}

template <class U>
void late_value(const UnitStep& a, float* out) {
  const std::int64_t h = a.width;
  for (std::int64_t r = 0; r < a.rows; ++r) {
#pragma omp simd
    for (std::int64_t j = 0; j < h; ++j) out[r * h + j] = U::late_value(load<U>(a, r, j, false));
  }
}

// Adds to dx, du and dprevious. The gradients of masked rows stay zero.
template <class U>
void late_backward(const UnitStep& a, const float* dlate, const UnitStepGradient& g) {
  const std::int64_t h = a.width;
  for (std::int64_t r = 0; r < a.rows; ++r) {
    if (a.mask && a.mask[r] == 0.0f) continue;
#pragma omp simd
    for (std::int64_t j = 0; j < h; ++j) {
      const Step<float, U> step = load<U>(a, r, j, true);
      Step<float, U> d{};
      U::late_backward(step, dlate[r * h + j], d);
      for (int p = 0; p < U::inputs; ++p) g.dx[(r * U::inputs + p) * h + j] += d.x[p];
      for (int p = 0; p < U::recurrents; ++p) g.du[(r * U::recurrents + p) * h + j] += d.u[p];
      for (int p = 0; p < U::states; ++p) g.dprevious[p][r * h + j] += d.s[p];
    }
  }
}

template <class U>
concept Gated = requires(const Step<float, U>& step, float& gate) {
  U::gates(step, gate, gate);
};

template <Gated U>
void gates(const UnitStep& a, float* input, float* forget) {
  const std::int64_t h = a.width;
  for (std::int64_t r = 0; r < a.rows; ++r) {
#pragma omp simd
    for (std::int64_t j = 0; j < h; ++j) {
      float i, f;
      U::gates(load<U>(a, r, j, false), i, f);
      input[r * h + j] = i;
      forget[r * h + j] = f;
    }
  }
}

// Whether every bias of a gate is one that the unit has.
template <class U>
constexpr bool has_its_gate_biases() {
  for (const GateBias& gate : U::gate_biases) {
    const int planes = gate.of == BiasOf::input   ? U::inputs
                       : gate.of == BiasOf::state ? U::recurrents + U::late
                                                  : U::vectors;
    if (gate.plane < 0 || gate.plane >= planes) return false;
  }
  return true;
}

template <class U>
constexpr Unit describe(const char* name, const char* variant) {
  static_assert(U::states <= max_states);
  Unit unit{name,    variant,    U::inputs,   U::recurrents, U::late, U::vectors, U::states,
            U::bias, forward<U>, backward<U>, nullptr,       nullptr, nullptr};
  if constexpr (U::late > 0) {
    unit.late_value = late_value<U>;
    unit.late_backward = late_backward<U>;
  }
  unit.position_vectors = position_vectors_of<U>;
  if constexpr (requires { U::initial_output; })
    unit.initial_output =
        U::initial_output == Activation::tanh ? InitialOutput::tanh : InitialOutput::identity;
  if constexpr (Gated<U>) unit.gates = gates<U>;
  if constexpr (requires { U::gate_biases; }) {
    static_assert(has_its_gate_biases<U>(), "gate_biases: a plane or vector beyond the last");
    unit.gate_biases = U::gate_biases;
  }
  if constexpr (requires { U::vector_start(0, 0.0, LayerIndex{}); })
    unit.vector_start = U::vector_start;
  else if constexpr (requires { U::vector_start(0, 0.0); })
    unit.vector_start = [](int k, double uniform, LayerIndex) {
      return U::vector_start(k, uniform);
    };
  if constexpr (requires { U::state_start; }) {
    static_assert(std::size(U::state_start) == U::states, "state_start: one value per state");
    unit.state_starts = U::state_start;
  }
  if constexpr (requires { U::gate_bias; }) unit.gate_bias = U::gate_bias;
  return unit;
}

constexpr Unit table[] = {
#define NMT_UNIT(name, variant, ...) describe<__VA_ARGS__>(name, variant),
#include "units/units.def"
#undef NMT_UNIT
};

}  // namespace

std::span<const Unit> units() {
  return table;
}

}  // namespace nmt::kernels
