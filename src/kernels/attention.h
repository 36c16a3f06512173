#pragma once

#include "kernels/backend.h"

#include <cstdint>

namespace nmt::kernels {

enum class AttentionKind { additive, dot };

/// Multi-head attention over an encoded source; each head reads its slice of the attention space
/// and of the memory.
///   additive  score = v . tanh(query + key)          (Bahdanau et al. 2015, appendix A.1.2)
///   dot       score = query . key / sqrt(A / heads)  (Vaswani et al. 2017, eq. 1)
/// Softmax over the first lengths[b] source positions; the others weigh exactly 0.
struct Attention {
  AttentionKind kind = AttentionKind::additive;
  std::int64_t steps = 0;      ///< S
  std::int64_t sentences = 0;  ///< B of the memory
  std::int64_t space = 0;      ///< A, a multiple of heads
  std::int64_t width = 0;      ///< M, a multiple of heads
  std::int64_t heads = 1;
  const float* keys = nullptr;  ///< [S,B,A] projected memory
  /// [S,B,A] attention_exp_keys() of it: what the CPU reads, additive, in place of keys.
  const float* exp_keys = nullptr;
  const float* memory = nullptr;          ///< [S,B,M]
  const std::int32_t* lengths = nullptr;  ///< [B]
  const float* v = nullptr;               ///< [A], additive
};

/// to = e^2k for n numbers of the keys. tanh(q + k) = 1 - 2 / (1 + e^2q e^2k): with the
/// exponentials of queries and keys taken once, a score costs a multiply-add and half a division a
/// channel. Exact to float rounding while |q| and |k| are below 43, and beyond that too unless q
/// and k are so large with opposite signs. `to` may be `keys`.
void attention_exp_keys(const Cpu&, std::int64_t n, const float* keys, float* to);

/// For T steps of rows queries each: query [T,rows,A]; row r reads sentence[r], or r itself when
/// sentence is null. Writes weights [T,rows,heads,S] and context [T,rows,M].
NMT_KERNEL(attention_forward, const Attention& attention, std::int64_t target_steps,
           std::int64_t rows, const std::int32_t* sentence, const float* query, float* weights,
           float* context);

struct AttentionGradient {
  const float* dcontext = nullptr;  ///< [T,B,M]
  float* dquery = nullptr;          ///< [T,B,A], written
  float* dkeys = nullptr;           ///< [S,B,A], added to
  float* dmemory = nullptr;         ///< [S,B,M], added to
  float* dv = nullptr;              ///< [A], added to, additive
  float* scratch = nullptr;         ///< attention_scratch() floats
};
/// rows = B sentences, one query a step each (training).
NMT_KERNEL(attention_backward, const Attention& attention, std::int64_t target_steps,
           const float* query, const float* weights, const AttentionGradient& gradient);
std::int64_t attention_scratch(const Cpu&, const Attention& attention, std::int64_t target_steps);
std::int64_t attention_scratch(const Cuda&, const Attention& attention, std::int64_t target_steps);

}  // namespace nmt::kernels
