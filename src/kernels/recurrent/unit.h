#pragma once

#include <cstdint>
#include <span>

namespace nmt::kernels {

constexpr int max_states = 2;

/// One step of a unit for some rows (sentences or hypotheses), all row-major: planes of `width`
/// channels side by side.
struct UnitStep {
  std::int64_t rows = 0;
  std::int64_t width = 0;       ///< H
  const float* x = nullptr;     ///< [rows, inputs*H]
  const float* u = nullptr;     ///< [rows, recurrents*H] h'U, bias and layer normalization included
  const float* late = nullptr;  ///< [rows, late*H]
  const float* vectors = nullptr;       ///< [vectors*H]
  const float* position = nullptr;      ///< [position_vectors*H] of this step's position
  const float* mask = nullptr;          ///< [rows] or null; 0: the row's states pass through
  const float* previous[max_states]{};  ///< [rows,H] each
  float* next[max_states]{};            ///< [rows,H] each
};

/// Its gradients. Everything is written but dvectors and dposition, which are added to.
struct UnitStepGradient {
  const float* dnext[max_states]{};  ///< [rows,H]
  float* dx = nullptr;               ///< [rows, inputs*H]
  float* du = nullptr;               ///< [rows, recurrents*H]
  float* dlate = nullptr;            ///< [rows, late*H]
  float* dvectors = nullptr;         ///< [vectors*H]
  float* dposition = nullptr;        ///< [position_vectors*H]
  float* dprevious[max_states]{};    ///< [rows,H]; may be dnext
};

/// What gives states[0] of an initial state: it is given itself, or it follows from states[1].
enum class InitialOutput { given, tanh, identity };

/// A recurrent unit compiled for this processor: its shape and its point-wise steps on the calling
/// thread.
struct Unit {
  const char* name;
  const char* variant;  ///< "reset=before", as units.def says
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
  /// State vectors that an initial state consists of; the first follows from the second where that
  /// is one less than `states`.
  int initial_states() const {
    return initial_output == InitialOutput::given ? states : states - 1;
  }
  /// Whether it is of the matrix family: a product with U a step.
  bool is_matrix() const { return recurrents + late > 0; }
};

/// All lines of units.def, in order.
std::span<const Unit> units();

}  // namespace nmt::kernels
