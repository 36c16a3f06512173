#pragma once

#include "autograd/parameter.h"
#include "autograd/tape.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nmt::ops {

// Ops of linear layers and layer normalization, and the packing of their weights for inference.
// Frozen (packed) parameters are used packed; the result of a row then does not depend on the other
// rows. In shapes, a leading [..] is any number of rows.

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

/// Packs a block_linear() weight and releases its unpacked values.
void freeze_blocks(const Context& context, Parameter& weight, int planes);
/// Packs a [K,N] weight, or the transpose of a table [V,E], and releases its unpacked values.
void freeze(const Context& context, Parameter& weight, bool transpose = false);
/// freeze() of a [K,N] weight of linear() that multiplies single rows in which many values are
/// zero, as after ReLU: int8 products skip them where the processor gains by it.
void freeze_for_zeros(const Context& context, Parameter& weight);
/// Columns `ids` of a packed [k,n] matrix, in the same packed format. CPU only.
Tensor select_packed_columns(const Context& context, std::int64_t k, std::int64_t n,
                             std::span<const std::int32_t> ids, const Tensor& packed);

}  // namespace nmt::ops
