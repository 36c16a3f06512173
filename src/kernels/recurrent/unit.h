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
  std::int64_t width = 0;   ///< H
  std::int64_t stride = 0;  ///< rows from this step to the next one, which is loaded ahead; or 0
  std::int64_t first_channel = 0;  ///< of those that are computed
  std::int64_t skipped_after = 0;  ///< channels at the end that are not computed
  const float* x = nullptr;        ///< [rows, inputs*H]
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

struct MatrixKernels;

/// The shape of a matrix-state unit (units/matrix/matrix_state.h). Its state vectors are h, [B,H],
/// and the memory, [B, memory_width()].
struct MatrixState {
  int planes = 0, scalars = 0, extras = 0, rows = 0, memory_vectors = 0, memory_scalars = 0;
  bool normalizes = false;
  const MatrixKernels* kernels = nullptr;
  /// The start of the bias of plane n, or of scalar n - planes; null: 0.
  double (*bias_start)(int n, double uniform) = nullptr;
  double (*row_start)(int k) = nullptr;  ///< null: 0

  /// Numbers that a head remembers beside its channels.
  int head_memory(int k) const { return memory_vectors * k + memory_scalars; }
  std::int64_t memory_width(std::int64_t width, std::int64_t heads, int k) const {
    return k * width + heads * head_memory(k);
  }
};

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
  double (*vector_start)(int vector, double uniform, LayerIndex place) = nullptr;
  /// [states] the state vectors where a layer has no initial state; null: 0.
  const float* state_starts = nullptr;
  float state_start(int state) const { return state_starts ? state_starts[state] : 0.0f; }
  /// A unit with a matrix state: kernels/recurrent/matrix_state.h runs it, and the functions above
  /// are null. Null: a unit of vectors.
  const MatrixState* matrix_state = nullptr;
  /// Number of state vectors of an initial state: one less than `states` when the first is computed
  /// from the second. A matrix state starts at zero.
  int initial_states() const {
    if (matrix_state) return 0;
    return initial_output == InitialOutput::given ? states : states - 1;
  }
  /// Whether every step multiplies a state by a matrix.
  bool has_recurrent_product() const { return recurrents + late > 0; }
};

/// All units of units.def with vectors as states, in order (the others: matrix_state_units()).
std::span<const Unit> units();

}  // namespace nmt::kernels
