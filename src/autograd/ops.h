#pragma once

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/recurrent/unit.h"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nmt::ops {

// Operations on the tape; forward and backward of each stand side by side in src/autograd. In
// shapes, a leading [..] is any number of rows. Frozen (packed) parameters are used packed; the
// result of a row then does not depend on the other rows.

/// x [..,K] W [K,N] + b [N] -> [..,N]
Var linear(Tape& tape, const Var& x, Parameter& weight, Parameter* bias = nullptr);
/// x W of several frozen weights of one shape: one product where join_packed() has placed them.
std::vector<Var> linear_of_each(Tape& tape, const Var& x, const std::vector<Parameter*>& weights);
/// Places packed weights of one shape one after the other, on a device.
void join_packed(const Context& context, const std::vector<Parameter*>& weights);
/// x W for attention, its only reader: on a device of precision bfloat16 training may keep the
/// result in bfloat16; its gradient is float32. Then x has a rounded copy (Node::rounded).
Var linear_for_attention(Tape& tape, const Var& x, Parameter& weight);
/// x [..,K*k] W -> [..,P*K*n], where each of the P planes of W is block-diagonal. weight [K,k,P*n]
/// holds only the blocks; computed as one batched product (Gao et al. 2018, section 2.1). bias
/// [P*K*n].
Var block_linear(Tape& tape, const Var& x, Parameter& weight, int planes,
                 Parameter* bias = nullptr);
/// Views rows as [K, width/K], transposes and flattens them (Gao et al. 2018, section 2.2).
Var rearrange(Tape& tape, const Var& x, std::int64_t groups);
/// Input of embedding().
struct Symbols {
  Tensor ids;        ///< i32 [..]
  Tensor runs = {};  ///< kernels::id_runs() of the ids, for the gradient on a GPU
};
/// Uploads token ids to the tape's device, with their runs if the gradient needs them.
Symbols send_symbols(const Tape& tape, const std::vector<std::int32_t>& ids, Shape shape);
/// Looks up rows of table [V,E] -> [..,E].
Var embedding(Tape& tape, Parameter& table, const Symbols& symbols);
/// Layer normalization of each of `planes` parts of a row (Ba et al. 2016, eq. 4).
Var layer_norm(Tape& tape, Var x, Parameter& gain, Parameter& bias, int planes = 1);
/// layer_norm(linear(x)) of `planes` planes. On a device of precision bfloat16 the gradient of the
/// product is written in bfloat16 alone. There training may also keep the result and its gradient
/// in bfloat16, if `may_round` says that its only reader takes that: recurrences do, of units
/// without late planes.
Var linear_norm(Tape& tape, const Var& x, Parameter& weight, Parameter& gain, Parameter& bias,
                int planes = 1, bool may_round = false);
/// The end of a layer with a residual connection: layer_norm(x + dropout(linear(h), p)) of x [..,N]
/// and h [..,K]. Training computes all but the product in one pass over the rows, and so backward.
Var residual_norm(Tape& tape, const Var& x, const Var& h, Parameter& weight, Parameter& gain,
                  Parameter& bias, float p);
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

/// The recurrent parameters of a unit; null where the unit or the options have none.
struct Cell {
  std::string name;  ///< name of the layer, for messages
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
  bool rearrange = false;          ///< rearrange rows before each product
  Tensor dropout;                  ///< [B,H] kernels::Cell::dropout, or empty
  std::int64_t heads = 1;          ///< N, of a matrix-state unit
  int state_width = 0;             ///< K, likewise
  Parameter* rows = nullptr;       ///< [K,H], of a matrix-state unit with trained rows
};
/// Packs the matrices of a cell for inference.
void freeze(const Context& context, const Cell& cell);
/// Packs a block_linear() weight and releases its unpacked values.
void freeze_blocks(const Context& context, Parameter& weight, int planes);
/// Packs a [K,N] weight, or the transpose of a table [V,E], and releases its unpacked values.
void freeze(const Context& context, Parameter& weight, bool transpose = false);
/// freeze() of a [K,N] weight of linear() that multiplies single rows in which many values are
/// zero, as after ReLU: int8 products skip them where the processor gains by it.
void freeze_for_zeros(const Context& context, Parameter& weight);

/// The projections of a recurrent layer [T,B,inputs*H]; or a product whose layer normalization a
/// single step applies on a device, overwriting it (kernels::PendingNorm).
struct Projections {
  Projections(Var complete) : value(std::move(complete)) {}
  Projections(Var product, Parameter& norm_gain, Parameter& norm_bias)
      : value(std::move(product)), gain(&norm_gain), bias(&norm_bias) {}
  Var value;
  Parameter *gain = nullptr, *bias = nullptr;
};

/// The states after every step: one Var [T,B,H] per state vector; gradients flow only through the
/// first. x [T,B,inputs*H]: the projections. initial: [B,H] per state vector (all of them, only the
/// unit's initial_states(), or none: Unit::state_start). mask: [T,B] f32 or empty. position: that
/// of step 0 in the sentence.
std::vector<Var> recurrence(Tape& tape, const Cell& cell, const Projections& projections,
                            const std::vector<Var>& initial, const Tensor& mask, bool reverse,
                            std::int64_t position = 0);

/// Result of convolution().
struct Convolved {
  Var y;     ///< [T,B,E]
  Var last;  ///< [1,B,(K-1)*E] the inputs before step T, the last one first; null if reversed
};
/// Depthwise causal convolution over the steps of x [T,B,E] (kernels/recurrent/convolution.h):
/// weight [K,E], bias [E]. before: `last` [B,(K-1)*E] of the steps before x, or null; it gets no
/// gradient. mask: [T,B] f32 or empty.
Convolved convolution(Tape& tape, const Var& x, Parameter& weight, Parameter& bias,
                      const Var& before, const Tensor& mask, bool reverse);

/// recurrence() of a matrix-state unit: h after every step, [T,B,H], and the memory after the last,
/// [1,B,W] (kernels/recurrent/matrix_state.h); gradients flow only through h. x [T,B,inputs*H] and
/// shared [T,B, N*(planes*K + scalars)]: the projections. initial: h and memory, or none for zeros.
std::vector<Var> matrix_recurrence(Tape& tape, const Cell& cell, const Var& x, const Var& shared,
                                   const std::vector<Var>& initial, const Tensor& mask,
                                   bool reverse);

/// Mask and lengths of a padded batch.
struct PaddedSentences {
  PaddedSentences() = default;
  PaddedSentences(Tensor the_mask) : mask(std::move(the_mask)) {}
  Tensor mask;     ///< [T,B] f32, 1 where a sentence has a token; empty: no padding
  Tensor lengths;  ///< i32 [B], on the device; cudnn_layer() and attention read them
  std::vector<std::int32_t> host_lengths;  ///< the same in host memory
};

/// The weights of a recurrent layer for cuDNN, including the input projection.
struct CudnnLayer {
  const kernels::Cudnn* library = nullptr;
  Cell cell;                        ///< when frozen, cell.recurrent->packed holds all weights
  Parameter* input = nullptr;       ///< [E, inputs*H]
  Parameter* input_bias = nullptr;  ///< [inputs*H] or null
};
/// Packs a layer for inference and releases its unpacked matrices.
void freeze(const Context& context, const CudnnLayer& layer);
/// linear() and recurrence() in one, by cuDNN (kernels/recurrent/cudnn.h): x [T,B,E] -> the states
/// after every step, [T,B,H]. Of a second state vector only the last, [1,B,H], without gradient.
/// Not supported by Probe: cuDNN does not expose gates.
std::vector<Var> cudnn_layer(Tape& tape, const CudnnLayer& layer, const Var& x,
                             const std::vector<Var>& initial, const PaddedSentences& sentences,
                             bool reverse);

/// recurrence() with two units per step, the second over a given sequence: s = lower(h', x), h =
/// higher(s, higher_x) (kernels/recurrent/transition.h). x and higher_x [T,B,inputs*H]: the
/// projections.
std::vector<Var> transition(Tape& tape, const Cell& lower, const Cell& higher,
                            const Projections& of_x, const Projections& of_higher_x,
                            const std::vector<Var>& initial, const Tensor& mask, bool reverse,
                            std::int64_t position = 0);

/// Keys and values in int8 (kernels/attention/quantized_memory.h).
struct QuantizedMemory {
  Tensor bytes;                                             ///< i8 [B, bytes of a sentence]
  std::int64_t steps = 0, space = 0, width = 0, heads = 1;  ///< S, A, V
};
/// Guided alignment of an attention in training (kernels::AttentionLinks).
struct AttentionGuide {
  Tensor offsets;  ///< i32 [T*B+1]
  Tensor sources;  ///< i32, at least as many as the last offset
  int head = 0;
  float weight = 0;
  Tensor cost;  ///< f64 [1], to which the forward pass adds the cross-entropy without the weight
};
/// An encoded source as input of attention. Where the keys are in bfloat16, so are the values or
/// their rounded copy (linear_for_attention()).
struct Memory {
  Var values;       ///< [S,B,V]
  Var keys;         ///< [S,B,A]; null where exp_keys replaces it: additive, in inference on the CPU
  Tensor lengths;   ///< i32 [B]
  Tensor exp_keys;  ///< [S,B,A] kernels::attention_exp_keys(), additive on the CPU
  /// Instead of values and keys: dot products, in inference with int8 weights on the CPU.
  QuantizedMemory quantized{};
  std::shared_ptr<const AttentionGuide> guide = nullptr;  ///< null: none

  /// Source positions S; 0 without attention.
  std::int64_t steps() const {
    return quantized.bytes ? quantized.steps : values ? values->value.shape()[0] : 0;
  }
};
struct AttentionShape {
  kernels::AttentionKind kind = kernels::AttentionKind::additive;
  std::int64_t heads = 1;
  Parameter* v = nullptr;       ///< [A], additive
  Parameter* output = nullptr;  ///< [V,M] projection of the weighted values; null: none, V = M
};
struct Attended {
  Var context;     ///< [T,B,M]
  Tensor weights;  ///< [T,B,heads,S]
};
/// Builds the memory for attention of this shape: computes exp_keys, or quantizes keys and values,
/// where needed. In inference exp_keys overwrite the keys.
Memory remember(const Tape& tape, const AttentionShape& shape, Var values, Var keys,
                Tensor lengths);
/// Attention for all target steps: query [T,B,A]. sentence: i32 [B], in inference the source
/// sentence of each row; empty: row b reads sentence b.
Attended attention(Tape& tape, const AttentionShape& shape, const Memory& memory, const Var& query,
                   const Tensor& sentence);

/// Multi-head self-attention within each sentence: x [T,B,3W], the query, key and value of each
/// head side by side (kernels/self_attention.h) -> the heads' weighted values [T,B,W], 0 at
/// padding. lengths: i32 [B].
Var self_attention(Tape& tape, const Var& x, std::int64_t heads, const Tensor& lengths);
/// The turns [T,size] of rotate() for heads of an even size: channel i turns by t 10000^(-2i/size)
/// at step t (Su et al. 2021, eq. 15).
Tensor turns(const Context& context, std::int64_t steps, std::int64_t size);
/// Rotary positions: turns the queries and keys of x [T,B,3W] as self_attention() reads it.
Var rotate(Tape& tape, Var x, std::int64_t heads, const Tensor& turns);

/// The parameters of a conditional layer (kernels/recurrent/conditional.h).
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
  std::vector<Var> states;  ///< [T,B,H] per state vector; gradients flow only through the first
  Attended attended;
};
ConditionalResult conditional(Tape& tape, const Conditional& layer, const Memory& memory,
                              const Projections& projections, const std::vector<Var>& initial,
                              const Tensor& sentence, std::int64_t position = 0);

/// Output layer and loss of x [R,E] with table [V,E], tied or not (kernels/softmax_loss.h); targets
/// i32 [R]. The gradient is that of the summed smoothed loss. Adds to sums f64 [2], on the device:
/// -log p(target), and the label-smoothed loss minus the entropy of the smoothed labels.
void softmax_loss(Tape& tape, const Var& x, Parameter& table, Parameter* bias,
                  const Tensor& targets, float smoothing, const Tensor& sums);
/// Softmax cross-entropy of logits [..,L] with a small number of labels; targets i32 [..], labels
/// or kernels::no_target. Gradient and sums as softmax_loss(); sums f64 [1] has the smoothed loss
/// alone.
void label_loss(Tape& tape, const Var& logits, const Tensor& targets, float smoothing,
                const Tensor& sums);
/// Negative log likelihood of a linear-chain CRF (kernels/label_loss.h): emissions [T,B,L],
/// transitions [L+2,L], targets i32 [T,B], lengths i32 [B]. Adds it to both sums.
void crf_loss(Tape& tape, const Var& emissions, Parameter& transitions, const Tensor& targets,
              const Tensor& lengths, const Tensor& sums);
/// Logits [R,V], for search.
Tensor logits(Tape& tape, const Var& x, Parameter& table, Parameter* bias);
/// Columns `ids` of a packed [k,n] matrix, in the same packed format. CPU only.
Tensor select_packed_columns(const Context& context, std::int64_t k, std::int64_t n,
                             std::span<const std::int32_t> ids, const Tensor& packed);

}  // namespace nmt::ops
