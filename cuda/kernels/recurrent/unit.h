#pragma once

// The recurrent units of units.def on the device: their point-wise steps.

#include "kernels/handles.h"
#include "kernels/products/bfloat16.h"
#include "kernels/recurrent/unit.h"

#include <cstdint>
#include <type_traits>

namespace nmt::cuda {

using kernels::Bfloat16;
using kernels::max_states;

/// Layer normalization of each plane of a product, where a step does it in the same kernel; null
/// gain: off.
struct RowNorm {
  const float* gain = nullptr;       ///< [planes*H]
  const float* norm_bias = nullptr;  ///< [planes*H]
  float* normal = nullptr;           ///< [rows, planes*H], for the backward pass; or null
  float* rstd = nullptr;             ///< [rows, planes], likewise
  /// Backward: row r's part of the gradients, [planes*H] at r * sums_stride; added to.
  float* gain_sums = nullptr;
  float* norm_bias_sums = nullptr;
  std::int64_t sums_stride = 0;
};

/// A unit's step for all rows; for an element-wise unit, and in persistent kernels, also all of its
/// steps in one kernel.
/// Pointers are those of the first step; a step is `stride` rows of x, mask, next and the gradients
/// away from the one before it (negative: backwards in time).
struct UnitSteps {
  std::int64_t rows = 0;
  std::int64_t width = 0;  ///< H
  std::int64_t steps = 1;  ///< more than one in kernels that take all steps
  std::int64_t stride = 0;
  const float* x = nullptr;             ///< [rows, inputs*H]
  const Bfloat16* x_rounded = nullptr;  ///< instead of x, for a unit without late planes
  float* u = nullptr;                   ///< [rows, recurrents*H] h'U
  float* late = nullptr;                ///< [rows, late*H]
  /// [recurrents*H], which the first kernel after the product adds to u; null: u includes it.
  const float* u_bias = nullptr;
  const float* late_bias = nullptr;  ///< [late*H] likewise
  /// Groups of the rearrangement in which the late value is written and dlate_value is read.
  std::int64_t late_groups = 1;
  // Read by row_kernels() and, but for raw_x, by persistent kernels:
  RowNorm u_norm, late_norm;  ///< u and late, with their bias, become normalized
  float* raw_x = nullptr;     ///< x where its bias or normalization is still to be applied; or null
  const float* x_bias = nullptr;  ///< [inputs*H] or null
  RowNorm x_norm;
  const float* vectors = nullptr;  ///< [vectors*H]
  /// [position_rows, position_vectors*H]; later positions read the last row.
  const float* positions = nullptr;
  std::int64_t position_rows = 0;
  std::int64_t position = 0;            ///< of the first step in its sentence
  const float* mask = nullptr;          ///< [rows] or null; 0: the row's states pass through
  const float* previous[max_states]{};  ///< [rows,H] before the first step
  float* next[max_states]{};            ///< [rows,H] after the first step
  /// Rounded for products: previous[0], read by the recurrent product of a single step; next[0],
  /// written; the late value, written. Or null.
  const Bfloat16* previous_rounded = nullptr;
  Bfloat16* next_rounded = nullptr;
  Bfloat16* late_value_rounded = nullptr;
};

/// Gradients: dx, du, dlate and dpositions are written, one row for each row of x; vector_sums is
/// added to.
struct UnitStepsGradient {
  /// Not 0: the carry starts as 0 and is not read; several steps of a kernel only. As wide as the
  /// other members, since graphs compare arguments byte by byte.
  std::int64_t from_zero = 0;
  /// [rows,H] of the first step, added to carry[0] at every step; or null.
  const float* dh = nullptr;
  /// [rows,H], the gradient of the states after the last step; becomes that before the first.
  float* carry[max_states]{};
  float* dx = nullptr;     ///< [rows, inputs*H]; null: dx_rounded alone
  float* du = nullptr;     ///< [rows, recurrents*H]
  float* dlate = nullptr;  ///< [rows, late*H]
  /// The same rounded, or null. Beside dx that of an element-wise unit is written for single steps
  /// by row_kernels() alone.
  Bfloat16 *dx_rounded = nullptr, *du_rounded = nullptr, *dlate_rounded = nullptr;
  /// Row r's part of the vectors' gradient, [vectors*H] at r * sums_stride.
  float* vector_sums = nullptr;
  std::int64_t sums_stride = 0;
  float* dpositions = nullptr;  ///< [rows, position_vectors*H] of the first step
};

/// The kernels of a unit. The last two are null without late planes.
struct UnitKernels {
  void (*forward)(const Cuda&, const UnitSteps&);
  void (*backward)(const Cuda&, const UnitSteps&, const UnitStepsGradient&);
  void (*late_value)(const Cuda&, const UnitSteps&, float* out);  ///< [rows,H]
  void (*late_backward)(const Cuda&, const UnitSteps&, const float* dlate_value,
                        const UnitStepsGradient&);  ///< adds
};

/// The kernels of a unit, one of kernels::units(), with a thread for each channel of a row.
const UnitKernels& channel_kernels(const kernels::Unit& unit);
/// The kernels for single steps with a RowNorm or raw_x, with a block for each row. The first
/// kernel after a product normalizes the product; the last kernel before the gradient of a product
/// is used applies the backward pass of the normalization.
const UnitKernels& row_kernels(const kernels::Unit& unit);
/// Two element-wise units of one kind in turn, all steps in one kernel: at each step the lower one
/// starts from the states after the higher one's step before, and the higher one from the lower
/// one's. Rows, steps, strides and masks are the same. higher.previous is not read. A forward step
/// alone may have raw_x in both units.
struct UnitChain {
  UnitSteps lower, higher;
  /// Not 0: lower.next has rows for all steps, else only for the last one.
  std::int64_t keep = 1;
};
static_assert(std::has_unique_object_representations_v<UnitChain>,
              "graphs compare arguments byte by byte");
struct ChainKernels {
  void (*forward)(const Cuda&, const UnitChain&);
  /// `lower.carry` holds the gradient of the states after the last step and receives that before
  /// the first; `higher.dh` is added at every step.
  void (*backward)(const Cuda&, const UnitChain&, const UnitStepsGradient& lower,
                   const UnitStepsGradient& higher);
};
/// Error: a unit with recurrent products.
const ChainKernels& chain_kernels(const kernels::Unit& unit);

/// Single steps of two element-wise units of one kind with the same rows: the higher unit of a step
/// (with raw_x or without), and the lower unit of the next step, which starts from its states.
struct PairKernels {
  void (*forward)(const Cuda&, const UnitSteps& higher, const UnitSteps& lower);
  /// First the lower unit: `lower_gradient.carry` holds the gradient of its states and receives
  /// that of the states before the higher one, whose own carry is not read.
  void (*backward)(const Cuda&, const UnitSteps& higher, const UnitSteps& lower,
                   const UnitStepsGradient& higher_gradient,
                   const UnitStepsGradient& lower_gradient);
};
/// Error: a unit with recurrent products.
const PairKernels& pair_kernels(const kernels::Unit& unit);

/// row_kernels() for steps that normalize, else channel_kernels().
inline const UnitKernels& kernels_of(const kernels::Unit& unit, bool normalizes) {
  return normalizes ? row_kernels(unit) : channel_kernels(unit);
}

}  // namespace nmt::cuda
