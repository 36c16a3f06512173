#pragma once

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "kernels/attention.h"

#include <cstdint>
#include <memory>

namespace nmt::ops {

// Attention to a source, and self-attention.

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

}  // namespace nmt::ops
