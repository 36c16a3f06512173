#pragma once

// One step of a recurrent cell for all rows, forward and backward. The drivers in recurrence.cu,
// transition.cu and conditional.cu are built from it.

#include "cuda/kernels/recurrent/unit.h"
#include "kernels/products/product_input.h"
#include "kernels/recurrent/recurrence.h"

namespace nmt::cuda {

using kernels::Cell;
using kernels::CellGradient;
using kernels::CellRecord;
using kernels::ProductInput;

/// Recurrent product, bias or normalization, point-wise step. `record_row` is the first row of the
/// step in the record; the caller sets x, mask, position, previous and next, and raw_x with its
/// bias and normalization where x is not complete. An element-wise unit may take all of its steps
/// at once.
void cell_forward(const Cuda& cuda, const Cell& cell, const CellRecord& record,
                  std::int64_t record_row, UnitSteps step);

/// The rows from `row` on of a matrix that may be missing.
template <class T>
T* part(T* matrix, std::int64_t row, std::int64_t width) {
  return matrix ? matrix + row * width : nullptr;
}

/// Sets the normalization of the projections, which the step then applies.
inline void set_norm(const kernels::PendingNorm& norm, UnitSteps& step) {
  if (!norm.product) return;
  step.x = step.raw_x = norm.product;
  step.x_norm = {.gain = norm.gain, .norm_bias = norm.bias};
}

/// Scratch memory of a cell's backward pass over [T,B].
struct CellScratch {
  float* sums = nullptr;  ///< [B, cell_sums()] sums over the steps: vectors, gains, norm biases
  float* dpositions = nullptr;  ///< [T,B, position_vectors*H]
};
/// The size of the scratch memory in floats.
std::int64_t cell_scratch(const Cell& cell, std::int64_t steps, std::int64_t batch);
/// Allocates the scratch memory from `*memory` on, advances `*memory` past it, and sets the sums to
/// 0.
CellScratch start_cell(const Cuda& cuda, const Cell& cell, std::int64_t steps, std::int64_t batch,
                       float** memory);

/// Sets the cell's parameters, which all steps share, and the rows of the record from `record_row`
/// on.
void set_parameters(const Cell& cell, const CellRecord& record, std::int64_t record_row,
                    UnitSteps& step);
/// The gradients of the steps from `row` on of [T,B]; without dh and carry.
UnitStepsGradient step_gradient(const Cell& cell, const CellGradient& gradient, std::int64_t row,
                                const CellScratch& scratch);

/// Sets where a backward step adds its sums of the gradients of gains and biases.
void set_sums(const Cell& cell, const CellScratch& scratch, UnitSteps& step);

/// Floats for each row that cell_backward() needs as temporary memory.
std::int64_t cell_space(const Cell& cell);

/// The backward step. carry[] holds the gradient of the states after it and receives that of the
/// states before it; dh [rows,H] is added to carry[0] first, or null. `row` is the first row of the
/// step in [T,B] and in the record; temporary: rows * cell_space(). from_zero: the steps of an
/// element-wise unit start from a carry of 0, which is not read.
void cell_backward(const Cuda& cuda, const Cell& cell, const CellRecord& record,
                   const CellGradient& gradient, std::int64_t row, UnitSteps step, const float* dh,
                   float* const* carry, const CellScratch& scratch, float* temporary,
                   bool from_zero = false);

/// Adds the sums in the scratch memory to the gradients. `position` is that of row 0 of
/// [T,B].
void finish_cell(const Cuda& cuda, const Cell& cell, std::int64_t steps, std::int64_t batch,
                 std::int64_t position, const CellScratch& scratch, const CellGradient& gradient);

/// to [rows, planes*width] (+)= from [rows, in] W; W packed, dense or with `groups` blocks on each
/// plane's diagonal. With groups a rounded copy of `from` is not read.
void product(const Cuda& cuda, std::int64_t groups, std::int64_t planes, std::int64_t rows,
             std::int64_t in, std::int64_t width, const ProductInput& from, const float* packed,
             bool accumulate, float* to);
/// to [rows, in] (+)= from [rows, planes*width] W^T, W^T packed.
void product_transposed(const Cuda& cuda, std::int64_t groups, std::int64_t planes,
                        std::int64_t rows, std::int64_t in, std::int64_t width,
                        const ProductInput& from, const float* packed, bool accumulate, float* to);

}  // namespace nmt::cuda
