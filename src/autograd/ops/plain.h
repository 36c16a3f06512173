#pragma once

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "kernels/activation.h"

#include <cstdint>
#include <vector>

namespace nmt::ops {

// Ops on single values and on rows: embeddings, dropout, sums, activations, and the selection of
// rows and steps. In shapes, a leading [..] is any number of rows.

/// Input of embedding().
struct Symbols {
  Tensor ids;        ///< i32 [..]
  Tensor runs = {};  ///< kernels::id_runs() of the ids, for the gradient on a GPU
};
/// Uploads token ids to the tape's device, with their runs if the gradient needs them.
Symbols send_symbols(const Tape& tape, const std::vector<std::int32_t>& ids, Shape shape);
/// Looks up rows of table [V,E] -> [..,E].
Var embedding(Tape& tape, Parameter& table, const Symbols& symbols);
/// Inverted dropout; returns x when p is 0 or the tape does not record. Draws a mask per value, or
/// per sentence and channel for x [T,B,N] on a tape that shares masks over steps. The mask of a
/// value depends on the tape's seed, pass and count of dropouts, and on its step, its channel and
/// the position of its sentence in the full batch (Tape::set_batch_slice). For x [R,N], `rows` i32
/// [R] gives the rows in [T,B]; without it, x [R,N] is a batch of its own.
Var dropout(Tape& tape, const Var& x, float p, const Tensor& rows = {});
Var add(Tape& tape, Var x, const Var& y);
/// factor * x
Var scale(Tape& tape, Var x, float factor);
Var tanh(Tape& tape, Var x);
/// activation(g) * x, or activation(g) where x is null.
Var gate(Tape& tape, kernels::Activation activation, Var g, const Var& x = nullptr);
/// Concatenation along the last axis.
Var concat(Tape& tape, const std::vector<Var>& parts);
/// Rows rows[i] of x viewed as [rows, width] -> [R, width]; rows must be distinct while the tape
/// records.
Var select_rows(Tape& tape, const Var& x, const Tensor& rows);
/// select_rows() of several matrices with as many rows, for inference: one kernel on a device.
std::vector<Var> select_rows_of_each(const Tape& tape, const std::vector<Var>& matrices,
                                     const Tensor& rows);
/// Rows of x viewed as [rows, width]; `rows` i32 [..] may name a row several times -> [.., width].
Var gather_rows(Tape& tape, const Var& x, const Symbols& rows);
/// Step t of x [T,B,N] -> [B,N].
Var step(Tape& tape, const Var& x, std::int64_t t);

}  // namespace nmt::ops
