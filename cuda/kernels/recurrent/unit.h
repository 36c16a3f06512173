#pragma once

// The recurrent units of units.def on the device: their point-wise steps, a thread a channel of a
// row.

#include "kernels/backend.h"
#include "kernels/recurrent/unit.h"

#include <cstdint>

namespace nmt::cuda {

using kernels::max_states;

/// Layer normalization of each plane of a product, where a step does it in the same kernel; null
/// gain: off.
struct RowNorm {
  const float* gain = nullptr;       ///< [planes*H]
  const float* norm_bias = nullptr;  ///< [planes*H]
  float* normal = nullptr;           ///< [rows, planes*H] and
  float* rstd = nullptr;             ///< [rows, planes], for the backward pass; or null
  float* gain_sums = nullptr;        ///< backward: row r's part of the gradients, [planes*H] at r *
                                     ///< sums_stride; added to
  float* norm_bias_sums = nullptr;
  std::int64_t sums_stride = 0;
};

/// A unit's step for all rows; for an element-wise unit also all of its steps in one kernel.
/// Pointers are those of the first step; a step is `stride` rows of x, mask, next and the gradients
/// away from the one before it (negative: backwards in time).
struct UnitSteps {
  std::int64_t rows = 0;
  std::int64_t width = 0;  ///< H
  std::int64_t steps = 1;  ///< more than one only without recurrent and late planes
  std::int64_t stride = 0;
  const float* x = nullptr;       ///< [rows, inputs*H]
  float* u = nullptr;             ///< [rows, recurrents*H] h'U
  float* late = nullptr;          ///< [rows, late*H]
  const float* u_bias = nullptr;  ///< [recurrents*H] that the first kernel after the product adds
                                  ///< to u; null: it is there
  const float* late_bias = nullptr;  ///< [late*H] likewise
  std::int64_t late_groups = 1;  ///< groups of the rearrangement that the late value is written in
                                 ///< and dlate_value is read in
  RowNorm u_norm,
      late_norm;  ///< normal_kernels_of() alone: u and late, with their bias, become normalized
  float* raw_x = nullptr;  ///< normal_kernels_of() alone: x where it has still to get its bias or
  const float* x_bias = nullptr;  ///< [inputs*H] normalization; else null
  RowNorm x_norm;
  const float* vectors = nullptr;  ///< [vectors*H]
  const float* positions =
      nullptr;  ///< [position_rows, position_vectors*H]; past the last row the last row serves
  std::int64_t position_rows = 0;
  std::int64_t position = 0;            ///< of the first step in its sentence
  const float* mask = nullptr;          ///< [rows] or null; 0: the row's states pass through
  const float* previous[max_states]{};  ///< [rows,H] before the first step
  float* next[max_states]{};            ///< [rows,H] after the first step
};

/// Gradients: dx, du, dlate and dpositions are written, a row a row of x; vector_sums is added to.
struct UnitStepsGradient {
  const float* dh =
      nullptr;  ///< [rows,H] of the first step, added to carry[0] at every step; or null
  float* carry[max_states]{};  ///< [rows,H] the gradient of the states after the last step; becomes
                               ///< that before the first
  float* dx = nullptr;         ///< [rows, inputs*H]
  float* du = nullptr;         ///< [rows, recurrents*H]
  float* dlate = nullptr;      ///< [rows, late*H]
  float* vector_sums =
      nullptr;  ///< row r's part of the vectors' gradient, [vectors*H] at r * sums_stride
  std::int64_t sums_stride = 0;
  float* dpositions = nullptr;  ///< [rows, position_vectors*H] of the first step
};

/// The kernels of a unit, by what they do.
struct UnitKernels {
  void (*forward)(const Cuda&, const UnitSteps&);
  void (*backward)(const Cuda&, const UnitSteps&, const UnitStepsGradient&);
  void (*late_value)(const Cuda&, const UnitSteps&,
                     float* out);  ///< [rows,H]; null without late planes
  void (*late_backward)(const Cuda&, const UnitSteps&, const float* dlate_value,
                        const UnitStepsGradient&);  ///< adds; null likewise
};

/// Those of a line of units.def, one of kernels::units().
const UnitKernels& kernels_of(const kernels::Unit& unit);
/// For single steps with a RowNorm or raw_x: a block a row. The first kernel after a product
/// normalizes it, the last one before a product's gradient is used takes the gradient through the
/// normalization.
const UnitKernels& normal_kernels_of(const kernels::Unit& unit);

}  // namespace nmt::cuda
