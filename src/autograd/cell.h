#pragma once

// What the ops of recurrence and conditional layer share: a cell's parameters as the kernels read
// them, the buffers of its record and of its gradients, and the products at the end that give the
// weights' gradients.

#include "autograd/ops.h"
#include "kernels/recurrent/recurrence.h"

#include <vector>

namespace nmt::ops {

/// A cell's kernel view with the tensors that keep it alive.
struct CellView {
  kernels::Cell cell;
  Tensor packed, packed_transposed;
};
/// Packs the matrices unless they are packed already; the transposed ones only when `backward`.
CellView view_cell(const Context& context, const Cell& cell, bool backward);

/// The record's tensors for `rows` rows.
struct CellBuffers {
  CellBuffers(const Context& context, const Cell& cell, std::int64_t rows, bool backward);
  kernels::CellRecord record() const;
  Tensor rearranged, u, u_normal, u_rstd, late, late_normal, late_rstd, late_value;
};

/// The gradients' tensors for `rows` rows; parameters' gradients are added to directly.
struct CellGradients {
  CellGradients(const Context& context, const Cell& cell, std::int64_t rows);
  kernels::CellGradient view(const Cell& cell) const;
  Tensor dx, du, dlate;
};

/// Adds the gradients of matrices and bias. previous_rows are the states[0] that the steps read, as
/// pieces of consecutive rows.
struct Piece {
  const float* states;  // [rows,H]
  std::int64_t first;   // row in [T,B]
  std::int64_t rows;
};
/// Those of a recurrence over states [T,B,H] from start [B,H]; `reverse`: from the last step to the
/// first.
std::vector<Piece> previous_rows(const Tensor& start, const Tensor& states, bool reverse);
void add_weight_gradients(const Context& context, const Cell& cell, const CellBuffers& buffers,
                          const CellGradients& gradients, const std::vector<Piece>& previous,
                          std::int64_t rows);

/// What the loop over `rows` steps must do: products with the state; planes of x, states and
/// products' results moved once, forward or back (x, states and dh in, dx out; gates are computed
/// anew).
PartWork cell_work(const Cell& cell, std::int64_t rows, bool back);
inline PartWork add_work(const PartWork& a, const PartWork& b) {
  return {a.flops + b.flops, a.bytes + b.bytes};
}

/// The initial state vectors, all of them: states[0] from states[1] where the unit's initial_output
/// says so and it is not given.
std::vector<Var> complete_states(Tape& tape, const Cell& cell, std::vector<Var> initial);
/// The given initial states, zeros where none is given: [batch,H] each.
std::vector<Tensor> initial_states(const Context& context, const Cell& cell,
                                   const std::vector<Var>& initial, std::int64_t batch);

/// Tensors [batch,H] for the gradients of all state vectors; `to` gets their pointers.
std::vector<Tensor> initial_gradients(const Context& context, const Cell& cell, std::int64_t batch,
                                      float** to);

/// The states that the steps of a recurrence read: [T,B,H] each, from the initial ones and those
/// after each step.
std::vector<Tensor> states_before(const Context& context, const std::vector<Tensor>& start,
                                  const std::vector<Var>& states, bool reverse);
/// A tensor's values in the probe's memory; empty when it is.
Tensor host_copy(const Context& context, Probe& probe, const Tensor& tensor);
/// Adds the cell's gates at all steps to the tape's probe. x [T,B,inputs*H]; buffers of all steps;
/// previous [T,B,H] a state vector; `lower`: as GateRecord has it.
void probe_gates(const Tape& tape, const Cell& cell, const Tensor& x, const CellBuffers& buffers,
                 const std::vector<Tensor>& previous, bool reverse, int lower = -1);

/// A pointer to a tensor's floats, or null when it is empty.
inline float* pointer(const Tensor& tensor) {
  return tensor ? tensor.f32() : nullptr;
}
inline float* value_of(const Parameter* parameter) {
  return parameter ? parameter->value.f32() : nullptr;
}
inline float* gradient_of(const Parameter* parameter) {
  return parameter ? parameter->gradient.f32() : nullptr;
}

/// op(W) packed for a product on this tape: the frozen form when there is one, else packed now into
/// `keep`.
kernels::PackedWeight packed_weight(const Context& context, const Parameter& weight, bool transpose,
                                    Tensor& keep);

}  // namespace nmt::ops
