#pragma once

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "kernels/attention.h"
#include "kernels/recurrent/unit.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nmt::ops {

// Value and gradient of each op stand side by side in src/autograd. Shapes: a leading [..] is any
// number of rows. A parameter that is frozen (packed) is used packed, and the result of a row then
// does not depend on the other rows.

/// x [..,K] W [K,N] + b [N] -> [..,N]
Var linear(Tape& tape, const Var& x, Parameter& weight, Parameter* bias = nullptr);
/// x [..,K*k] W -> [..,P*K*n] with each of the P planes of W block-diagonal: weight [K,k,P*n] holds
/// the blocks alone, one batched product (Gao et al. 2018, section 2.1). bias [P*K*n].
Var block_linear(Tape& tape, const Var& x, Parameter& weight, int planes,
                 Parameter* bias = nullptr);
/// Rows read as [K, width/K], transposed and flattened (Gao et al. 2018, section 2.2).
Var rearrange(Tape& tape, const Var& x, std::int64_t groups);
/// What embedding() looks up.
struct Symbols {
  Tensor ids;        ///< i32 [..]
  Tensor runs = {};  ///< kernels::id_runs() of them, for the gradient on a GPU
};
/// Brings symbols to the tape's device, with their runs where the gradient needs them.
Symbols send_symbols(const Tape& tape, const std::vector<std::int32_t>& ids, Shape shape);
/// Rows of table [V,E] -> [.., E].
Var embedding(Tape& tape, Parameter& table, const Symbols& symbols);
/// Layer normalization of each of `planes` parts of a row (Ba et al. 2016, eq. 4).
Var layer_norm(Tape& tape, Var x, Parameter& gain, Parameter& bias, int planes = 1);
/// Inverted dropout; x itself when p is 0 or the tape does not record. A mask for every value or,
/// for x [T,B,N] on a tape that shares them over steps, for every sentence and channel. The mask of
/// a value depends on the tape's seed, pass and order of dropouts, and on its step, channel and
/// place of its sentence in the whole batch (Tape::take_part). `rows` i32 [R], for x [R,N]: its
/// rows as rows of [T,B]; without it x [R,N] is a batch of its own.
Var dropout(Tape& tape, const Var& x, float p, const Tensor& rows = {});
Var add(Tape& tape, Var x, const Var& y);
Var tanh(Tape& tape, Var x);
/// Side by side along the last axis.
Var concat(Tape& tape, const std::vector<Var>& parts);
/// rows[i] of x seen as [rows, width] -> [R, width]; every row at most once while the tape records.
Var select_rows(Tape& tape, const Var& x, const Tensor& rows);
/// Step t of x [T,B,N] -> [B,N].
Var step(Tape& tape, const Var& x, std::int64_t t);

/// A unit's recurrent parameters; null where the unit or the options have none.
struct Cell {
  std::string name;  ///< of its layer, for people
  const kernels::Unit* unit = nullptr;
  std::int64_t width = 0;  ///< H
  /// [H, (recurrents+late)*H], or with groups [K, H/K, (recurrents+late)*H/K].
  Parameter* recurrent = nullptr;
  Parameter* bias = nullptr;       ///< [(recurrents+late)*H]
  Parameter* gain = nullptr;       ///< [(recurrents+late)*H] layer normalization of h'U
  Parameter* norm_bias = nullptr;  ///< [(recurrents+late)*H]
  Parameter* vectors = nullptr;    ///< [vectors*H]
  Parameter* positions = nullptr;  ///< [P, position_vectors*H]
  std::int64_t groups = 1;         ///< K
  bool rearrange = false;          ///< the matrices read their rows rearranged
};
/// Packs a cell's matrices for inference.
void freeze(const Context& context, const Cell& cell);
/// Packs a block_linear weight and drops the plain values.
void freeze_blocks(const Context& context, Parameter& weight, int planes);
/// Packs a [K,N] weight, or the transpose of a table [V,E], and drops the plain values.
void freeze(const Context& context, Parameter& weight, bool transpose = false);

/// The states after every step: one Var [T,B,H] a state vector; gradients flow through the first.
/// x [T,B,inputs*H] holds the projections; initial [B,H] a state vector (all of them, the unit's
/// initial_states() alone, or none: zeros); mask [T,B] f32 or empty; position: that of step 0 in
/// its sentence.
std::vector<Var> recurrence(Tape& tape, const Cell& cell, const Var& x,
                            const std::vector<Var>& initial, const Tensor& mask, bool reverse,
                            std::int64_t position = 0);

/// The sentences of a padded batch.
struct PaddedSentences {
  PaddedSentences() = default;
  PaddedSentences(Tensor the_mask) : mask(std::move(the_mask)) {}
  Tensor mask;     ///< [T,B] f32, 1 where a sentence has a symbol; empty: everywhere
  Tensor lengths;  ///< i32 [B], on the device; cudnn_layer() and attention read them
  std::vector<std::int32_t> host_lengths;  ///< the same in the host's memory
};

/// The weights of a recurrent layer that cuDNN runs, input projection and all.
struct CudnnLayer {
  Cell cell;                        ///< frozen: cell.recurrent's packed form is that of all of them
  Parameter* input = nullptr;       ///< [E, inputs*H]
  Parameter* input_bias = nullptr;  ///< [inputs*H] or null
};
/// Packs a layer for inference and drops the plain matrices.
void freeze(const Context& context, const CudnnLayer& layer);
/// What linear() and recurrence() compute together, by cuDNN (kernels/recurrent/cudnn.h): x [T,B,E]
/// -> the states after every step, [T,B,H]; of a second state vector the last alone, [1,B,H], which
/// no gradient flows through. Nobody can watch it: it gives no gates.
std::vector<Var> cudnn_layer(Tape& tape, const CudnnLayer& layer, const Var& x,
                             const std::vector<Var>& initial, const PaddedSentences& sentences,
                             bool reverse);

/// recurrence() with two units a step, the second over a given sequence: s = lower(h', x), h =
/// higher(s, guide) (kernels/recurrent/transition.h). x and guide [T,B,inputs*H] hold the
/// projections.
std::vector<Var> transition(Tape& tape, const Cell& lower, const Cell& higher, const Var& x,
                            const Var& guide, const std::vector<Var>& initial, const Tensor& mask,
                            bool reverse, std::int64_t position = 0);

/// An encoded source as attention sees it.
struct Memory {
  Var values;  ///< [S,B,M]
  Var keys;    ///< [S,B,A]; null where exp_keys took their place: additive, in inference on the CPU
  Tensor lengths;   ///< i32 [B]
  Tensor exp_keys;  ///< [S,B,A] kernels::attention_exp_keys(), additive on the CPU
};
/// The memory that `attention` reads: computes exp_keys where they are needed. In inference they
/// overwrite the keys.
Memory remember(const Tape& tape, kernels::AttentionKind attention, Var values, Var keys,
                Tensor lengths);
struct AttentionShape {
  kernels::AttentionKind kind = kernels::AttentionKind::additive;
  std::int64_t heads = 1;
  Parameter* v = nullptr;  ///< [A], additive
};
struct Attended {
  Var context;     ///< [T,B,M]
  Tensor weights;  ///< [T,B,heads,S]
};
/// All target steps at once: query [T,B,A]. sentence i32 [B] names each row's sentence in
/// inference, empty: its own.
Attended attention(Tape& tape, const AttentionShape& shape, const Memory& memory, const Var& query,
                   const Tensor& sentence);

/// The conditional layer's parameters (kernels/recurrent/conditional.h).
struct Conditional {
  Cell lower, higher;
  AttentionShape attention;
  Parameter* query = nullptr;  ///< [H,A]
  /// [M, inputs*H], or with the higher cell's groups [K, M/K, inputs*H/K].
  Parameter* context = nullptr;
  Parameter* context_bias = nullptr;  ///< [inputs*H]
  Parameter* context_gain = nullptr;  ///< [inputs*H]
  Parameter* context_norm_bias = nullptr;
};
struct ConditionalResult {
  std::vector<Var> states;  ///< [T,B,H] a state vector; gradients flow through the first
  Attended attended;
};
ConditionalResult conditional(Tape& tape, const Conditional& layer, const Memory& memory,
                              const Var& x, const std::vector<Var>& initial, const Tensor& sentence,
                              std::int64_t position = 0);

/// x [R,E] against table [V,E] tied or not (kernels/softmax_loss.h); targets i32 [R]. The gradient
/// is that of the smoothed sum. Adds to sums f64 [2]: -log p(target), and the label-smoothed loss
/// less the smoothing's entropy. They stay on the device.
void softmax_loss(Tape& tape, const Var& x, Parameter& table, Parameter* bias,
                  const Tensor& targets, float smoothing, const Tensor& sums);
/// Logits [R,V] for search.
Tensor logits(Tape& tape, const Var& x, Parameter& table, Parameter* bias);
/// Columns `ids` of a packed [k,n] matrix, packed likewise. On the CPU alone.
Tensor select_packed_columns(const Context& context, std::int64_t k, std::int64_t n,
                             std::span<const std::int32_t> ids, const Tensor& packed);

}  // namespace nmt::ops
