#include "kernels/recurrent/matrix_state.h"

#include "kernels/recurrent/matrix_scan.h"
#include "kernels/recurrent/rows.h"
#include "units/all.h"

namespace nmt::kernels {
namespace {

using namespace nmt::units;

template <class U>
void prepare(const MatrixRecurrence& a, MatrixHead at) {
  MatrixScan<float, U>(a, at.sentence, at.head).prepare();
}

template <class U>
void forward(const MatrixRecurrence& a, MatrixHead at, MatrixTiles tiles) {
  MatrixScan<float, U>(a, at.sentence, at.head).forward_tiles(tiles.begin, tiles.end);
}

template <class U>
void backward(const MatrixRecurrence& a, const MatrixGradient& g, MatrixHead at, MatrixTiles tiles,
              float* sums, float* doutput) {
  MatrixScan<float, U>(a, at.sentence, at.head)
      .backward_tiles(g, tiles.begin, tiles.end, sums, doutput);
}

template <class U>
void prepare_backward(const MatrixRecurrence& a, const MatrixGradient& g, MatrixHead at,
                      float* doutput) {
  MatrixScan<float, U>(a, at.sentence, at.head).prepare_backward(g, doutput);
}

template <class U>
void gates(const MatrixRecurrence& a, MatrixHead at, float* input, float* forget) {
  MatrixScan<float, U>(a, at.sentence, at.head).gates(input, forget);
}

template <class U>
std::int64_t gate_width(const MatrixRecurrence& a) {
  return MatrixScan<float, U>::gate_width(a);
}

template <class U>
constexpr MatrixKernels kernels_of = {
    MatrixScan<float, U>::lanes,
    prepare<U>,
    forward<U>,
    backward<U>,
    prepare_backward<U>,
    HeadGates<U> || ChannelGates<U> ? gates<U> : nullptr,
    gate_width<U>,
};

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
    unit.vector_start = [](int n, double uniform, LayerIndex) {
      return U::vector_start(n, uniform);
    };
  return unit;
}

constexpr Unit table[] = {
#define NMT_UNIT(...)
#define NMT_MATRIX_STATE_UNIT(name, variant, ...) describe<__VA_ARGS__>(name, variant),
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

// How threads share the heads of all sentences: whole ones, or where there are fewer than threads,
// `parts` of the tiles of each.
struct Division {
  Division(const Cpu& cpu, const MatrixRecurrence& a) : recurrence(a) {
    // So many numbers of states over all steps, about 15 us of work, are worth a thread.
    constexpr std::int64_t enough = 16 * 1024;
    const std::int64_t heads = a.batch * a.heads,
                       states = a.steps * a.width / a.heads * a.state_width,
                       lanes = a.unit->matrix_state->kernels->lanes;
    tiles = (a.width / a.heads + lanes - 1) / lanes;
    if (states < enough) {
      min_heads = 4;
    } else if (heads < cpu.pool->size()) {
      const std::int64_t per_head = (cpu.pool->size() + heads - 1) / heads;
      parts = std::clamp<std::int64_t>(per_head, 1, std::min(tiles, states / enough));
    }
  }
  RowShares heads(const Cpu& cpu) const {
    return RowShares(cpu, recurrence.batch * recurrence.heads, min_heads);
  }
  RowShares all_parts(const Cpu& cpu) const {
    return parts == 1 ? heads(cpu) : RowShares(cpu, recurrence.batch * recurrence.heads * parts, 1);
  }
  // Of a number in all_parts().
  MatrixHead head(std::int64_t i) const {
    return {i / parts / recurrence.heads, i / parts % recurrence.heads};
  }
  MatrixTiles tiles_of(std::int64_t i) const {
    return {tiles * (i % parts) / parts, tiles * (i % parts + 1) / parts};
  }

  const MatrixRecurrence& recurrence;
  std::int64_t tiles = 1, parts = 1, min_heads = 1;
};

}  // namespace

std::span<const Unit> matrix_state_units() {
  return table;
}

std::int64_t matrix_record(const Cpu&, const MatrixRecurrence& a) {
  return a.batch * a.heads * a.steps * head_output(a);
}

// Sums of each share; then the gradients of the heads' vectors: of each share, which uses them for
// one head after the other, or of each part of a head.
std::int64_t matrix_scratch(const Cpu& cpu, const MatrixRecurrence& a) {
  const Division division(cpu, a);
  const std::int64_t shares = division.all_parts(cpu).count,
                     parts = division.parts == 1 ? shares : a.batch * a.heads * division.parts;
  return shares * sums_of(a) + parts * a.steps * head_output(a);
}

void matrix_forward(const Cpu& cpu, const MatrixRecurrence& a) {
  const MatrixKernels& kernels = *a.unit->matrix_state->kernels;
  const Division division(cpu, a);
  if (division.parts > 1)
    division.heads(cpu).run(cpu, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        kernels.prepare(a, division.head(i * division.parts));
    });
  division.all_parts(cpu).run(cpu, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (division.parts == 1) kernels.prepare(a, division.head(i));
      kernels.forward(a, division.head(i), division.tiles_of(i));
    }
  });
}

void matrix_backward(const Cpu& cpu, const MatrixRecurrence& a, const MatrixGradient& g) {
  const MatrixKernels& kernels = *a.unit->matrix_state->kernels;
  const Division division(cpu, a);
  const RowShares shares = division.all_parts(cpu);
  const std::int64_t sums = sums_of(a), vectors = a.unit->vectors * a.width,
                     outputs = a.steps * head_output(a), parts = division.parts;
  float* const doutputs = g.scratch + shares.count * sums;
  std::fill_n(g.scratch, shares.count * sums, 0.0f);
  shares.run(cpu, [&](std::int64_t share, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* const doutput = doutputs + (parts == 1 ? share : i) * outputs;
      kernels.backward(a, g, division.head(i), division.tiles_of(i), g.scratch + share * sums,
                       doutput);
      if (parts == 1) kernels.prepare_backward(a, g, division.head(i), doutput);
    }
  });
  if (parts > 1)
    division.heads(cpu).run(cpu, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin * parts; i < end * parts; i += parts) {
        float* const doutput = doutputs + i * outputs;
        for (std::int64_t part = 1; part < parts; ++part)
          for (std::int64_t n = 0; n < outputs; ++n) doutput[n] += doutput[part * outputs + n];
        kernels.prepare_backward(a, g, division.head(i), doutput);
      }
    });
  add_shares(g.scratch, shares.count, sums, vectors, g.dvectors);
  add_shares(g.scratch + vectors, shares.count, sums, sums - vectors, g.drows);
}

}  // namespace nmt::kernels
