#pragma once

#include "kernels/recurrent/gate_bias.h"
#include "kernels/recurrent/layer_place.h"

#include <cstdint>
#include <span>

namespace nmt::kernels {

constexpr int max_states = 4;

/// One step of a unit for some rows (sentences or hypotheses). Row-major; planes of `width`
/// channels are adjacent.
struct UnitStep {
  std::int64_t rows = 0;
  std::int64_t width = 0;       ///< H
  const float* x = nullptr;     ///< [rows, inputs*H]
  const float* u = nullptr;     ///< [rows, recurrents*H] h'U, bias and layer normalization included
  const float* late = nullptr;  ///< [rows, late*H]
  const float* vectors = nullptr;       ///< [vectors*H]
  const float* position = nullptr;      ///< [position_vectors*H] for the position of this step
  const float* mask = nullptr;          ///< [rows] or null; 0: the states of the row are copied
  const float* previous[max_states]{};  ///< [rows,H] each
  float* next[max_states]{};            ///< [rows,H] each
};

/// Gradients of a UnitStep. dvectors and dposition are added to; everything else is written.
struct UnitStepGradient {
  const float* dnext[max_states]{};  ///< [rows,H]
  float* dx = nullptr;               ///< [rows, inputs*H]
  float* du = nullptr;               ///< [rows, recurrents*H]
  float* dlate = nullptr;            ///< [rows, late*H]
  float* dvectors = nullptr;         ///< [vectors*H]
  float* dposition = nullptr;        ///< [position_vectors*H]
  float* dprevious[max_states]{};    ///< [rows,H]; may be dnext
};

/// How states[0] of an initial state is obtained: given, or computed from states[1].
enum class InitialOutput { given, tanh, identity };

/// A recurrent unit compiled for the instruction set in use: its shape, and its pointwise steps on
/// the calling thread.
struct Unit {
  const char* name;
  const char* variant;  ///< for example "reset=before" (units.def)
  int inputs, recurrents, late, vectors, states;
  bool bias;
  void (*forward)(const UnitStep&);
  void (*backward)(const UnitStep&, const UnitStepGradient&);
  void (*late_value)(const UnitStep&, float* out);  ///< [rows,H]; null without late planes
  void (*late_backward)(const UnitStep&, const float* dlate_value,
                        const UnitStepGradient&);  ///< adds; null likewise
  void (*gates)(const UnitStep&, float* input,
                float* forget);  ///< [rows,H] each, masked rows too; null: it has no gates
  int position_vectors = 0;
  InitialOutput initial_output = InitialOutput::given;
  std::span<const GateBias> gate_biases = {};
  float gate_bias = usual_gate_bias;
  /// The start of a trained vector from a uniform draw in [0, 1); null: 0.
  double (*vector_start)(int vector, double uniform, LayerPlace place) = nullptr;
  /// [states] the state vectors where a layer has no initial state; null: 0.
  const float* state_starts = nullptr;
  float state_start(int state) const { return state_starts ? state_starts[state] : 0.0f; }
  /// Number of state vectors of an initial state: one less than `states` when the first is computed
  /// from the second.
  int initial_states() const {
    return initial_output == InitialOutput::given ? states : states - 1;
  }
  /// Whether it is a matrix unit, with a recurrent matmul in every step.
  bool is_matrix() const { return recurrents + late > 0; }
};

/// All units of units.def, in order.
std::span<const Unit> units();

}  // namespace nmt::kernels
