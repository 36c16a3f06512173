#pragma once

// What the ops of recurrence and conditional layer share: a cell's parameters as the kernels read
// them, the buffers of its record and of its gradients, and the products at the end that give the
// weights' gradients.

#include "autograd/ops/recurrent.h"
#include "kernels/recurrent/recurrence.h"

#include <vector>

namespace nmt::ops {

/// Kernel arguments of a cell, with the tensors that own the memory.
struct CellView {
  kernels::Cell cell;
  Tensor packed, packed_transposed;
};
/// Converts a cell to kernel arguments; packs its matrices unless they are packed, and the
/// transposed ones only if `backward`.
CellView view_cell(const Context& context, const Cell& cell, bool backward);

/// The tensors of a CellRecord for `rows` rows.
struct CellBuffers {
  CellBuffers(const Context& context, const Cell& cell, std::int64_t rows, bool backward);
  kernels::CellRecord record() const;
  Tensor rearranged, u, u_normal, u_rstd, late, late_normal, late_rstd, late_value,
      late_value_rounded;
};

/// The gradient tensors for `rows` rows. Gradients of parameters are accumulated directly.
struct CellGradients {
  /// `x`: the cell's projections, whose gradient has their type.
  CellGradients(const Context& context, const Cell& cell, std::int64_t rows, const Tensor& x);
  const Tensor& of_x() const { return dx ? dx : dx_rounded; }
  kernels::CellGradient view(const Cell& cell) const;
  Tensor dx, du, dlate;
  /// Instead of dx, or beside it where the driver gives the gradients of x to products.
  Tensor dx_rounded;
  Tensor du_rounded, dlate_rounded;
};

/// Room for the rounded copies of rows [rows,columns] that the kernels of a cell write for its
/// products; empty where they read none.
Tensor room_for_products(const Context& context, const Cell& cell, std::int64_t rows,
                         std::int64_t columns);
/// The same of the states [T,B,H] of a recurrence, for its own products and those of later ops: the
/// node gets the copy, and the loop writes it.
template <class Loop>
void round_states(const Tape& tape, const Cell& cell, Node& states, Loop& loop) {
  const Tensor& value = states.value;
  Tensor copy = cell.unit->has_recurrent_product()
                    ? room_for_products(tape.context(), cell, value.rows(), cell.width)
                    : allocate_rounded(tape.context(), value.shape());
  if (!copy) return;
  loop.states_rounded = copy.data<std::uint16_t>();
  states.rounded = {value.f32(), std::move(copy)};
}

/// A run of consecutive rows of states[0] that steps read.
struct Piece {
  kernels::ProductInput states;  // [rows,H]
  std::int64_t first;            // row in [T,B]
  std::int64_t rows;
};
/// The rows of states[0] that a recurrence over states [T,B,H] with initial state [B,H] reads;
/// `reverse`: from the last step to the first.
std::vector<Piece> previous_rows(const Tensor& start, const Node& states, bool reverse);
void add_weight_gradients(Tape& tape, const Cell& cell, const CellBuffers& buffers,
                          const CellGradients& gradients, const std::vector<Piece>& previous,
                          std::int64_t rows);

/// FLOPs and bytes of the loop over `rows` rows: recurrent products; planes of x, states and
/// products moved once, forward or backward (x, states and dh in, dx out; gates are recomputed).
/// `of_x`: of x and dx; the others are float32.
PartWork cell_work(const Cell& cell, std::int64_t rows, Dtype of_x, bool back);
inline PartWork add_work(const PartWork& a, const PartWork& b) {
  return {a.flops + b.flops, a.bytes + b.bytes};
}

/// All initial state vectors: computes states[0] from states[1] where the unit defines
/// initial_output and it is not given.
std::vector<Var> complete_states(Tape& tape, const Cell& cell, std::vector<Var> initial);
/// The initial states, [batch,H] each; those of the unit (Unit::state_start) where none is given.
std::vector<Tensor> initial_states(const Context& context, const Cell& cell,
                                   const std::vector<Var>& initial, std::int64_t batch);

/// Projections in float32, or in bfloat16 (linear_norm()).
inline void view_projections(const Tensor& x, const float*& plain,
                             const kernels::Bfloat16*& rounded) {
  if (x.dtype() == Dtype::bf16)
    rounded = x.data<std::uint16_t>();
  else
    plain = x.f32();
}

/// The normalization that a loop of a single step applies to projections.
inline kernels::PendingNorm pending_norm(const Projections& projections) {
  if (!projections.gain) return {};
  const Shape& shape = projections.value->value.shape();
  NMT_CHECK(shape[0] == 1, "a single step normalizes its projections, not {}", shape.text());
  return {projections.value->value.f32(), projections.gain->value.f32(),
          projections.bias->value.f32()};
}

/// Fills the fields that kernels::Recurrence and kernels::Transition share, for input projections x
/// [T,B,inputs*H] of the cell's unit. Error: x has another shape.
template <class Loop>
void describe_loop(const Cell& cell, const Var& x, const Tensor& mask, bool reverse,
                   std::int64_t position, bool keep, Loop& loop) {
  const Shape& shape = x->value.shape();
  const std::int64_t wide = cell.unit->inputs * cell.width;
  NMT_CHECK(shape.rank() == 3 && shape[2] == wide, "unit {} of width {} reads [T,B,{}], not {}",
            cell.unit->name, cell.width, wide, shape.text());
  loop.steps = shape[0];
  loop.batch = shape[1];
  loop.reverse = reverse;
  loop.position = position;
  loop.keep = keep;
  view_projections(x->value, loop.x, loop.x_rounded);
  loop.mask = mask ? mask.f32() : nullptr;
}
/// The state vectors of a loop that start from `start`: new results [T,B,H], which the loop then
/// writes.
template <class Loop>
std::vector<Var> new_states(Tape& tape, const Cell& cell, const std::vector<Tensor>& start,
                            Loop& loop) {
  std::vector<Var> states;
  for (int p = 0; p < cell.unit->states; ++p) {
    states.push_back(tape.result(tape.context().empty({loop.steps, loop.batch, cell.width})));
    loop.initial[p] = start[p].f32();
    loop.states[p] = states[p]->value.f32();
  }
  return states;
}

/// Allocates tensors [batch,H] for the gradients of all state vectors and stores their pointers in
/// `to`.
std::vector<Tensor> initial_gradients(const Context& context, const Cell& cell, std::int64_t batch,
                                      float** to);

/// The previous states of all steps, [T,B,H] each, from the initial states and the states after
/// each step.
std::vector<Tensor> states_before(const Context& context, const std::vector<Tensor>& start,
                                  const std::vector<Var>& states, bool reverse);
/// Copies a tensor to the probe's host memory; empty if the tensor is.
Tensor host_copy(const Context& context, Probe& probe, const Tensor& tensor);
/// Adds the gates of a cell at all steps to the tape's probe. x [T,B,inputs*H]; `buffers` of all
/// steps; previous: [T,B,H] per state vector; `lower`: see GateRecord. Step 0 is at position 0.
void probe_gates(const Tape& tape, const Cell& cell, const Tensor& x, const CellBuffers& buffers,
                 const std::vector<Tensor>& previous, bool reverse, int lower = -1);

/// A pointer to the data of a tensor; null if it is empty.
inline float* pointer(const Tensor& tensor) {
  return tensor ? tensor.f32() : nullptr;
}
inline float* value_of(const Parameter* parameter) {
  return parameter ? parameter->value.f32() : nullptr;
}
inline float* gradient_of(const Parameter* parameter) {
  return parameter ? parameter->gradient.f32() : nullptr;
}

/// op(W) packed: the frozen form if there is one, else packed now into `keep`.
kernels::PackedWeight packed_weight(const Context& context, const Parameter& weight, bool transpose,
                                    Tensor& keep);

}  // namespace nmt::ops
