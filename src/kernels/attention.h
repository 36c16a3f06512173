#pragma once

#include "kernels/backend.h"
#include "kernels/products/bfloat16.h"

#include <cstddef>
#include <cstdint>

namespace nmt::kernels {

enum class AttentionKind { additive, dot };

/// Multi-head attention over an encoded source. Each head reads its slice of the attention space
/// and of the memory.
///   additive  score = v . tanh(query + key)          (Bahdanau et al. 2015, appendix A.1.2)
///   dot       score = query . key / sqrt(A / heads)  (Vaswani et al. 2017, eq. 1)
/// Softmax over the first lengths[b] source positions; padding has weight 0.
struct Attention {
  AttentionKind kind = AttentionKind::additive;
  std::int64_t steps = 0;      ///< S
  std::int64_t sentences = 0;  ///< B of the memory
  std::int64_t space = 0;      ///< A, a multiple of heads
  std::int64_t width = 0;      ///< M, a multiple of heads
  std::int64_t heads = 1;
  const float* keys = nullptr;  ///< [S,B,A] projected memory
  /// [S,B,A] attention_exp_keys() of the keys; the CPU reads it instead of `keys` for additive
  /// attention.
  const float* exp_keys = nullptr;
  const float* memory = nullptr;          ///< [S,B,M]
  const std::int32_t* lengths = nullptr;  ///< [B]
  const float* v = nullptr;               ///< [A], additive
  /// Instead of `keys` and `memory`: attention/quantized_memory.h, `quantized_stride` bytes per
  /// sentence; dot products, without gradients. [CPU only]
  const std::byte* quantized = nullptr;
  std::int64_t quantized_stride = 0;
  /// Instead of `keys` and `memory`. [CUDA only]
  const Bfloat16 *keys_rounded = nullptr, *memory_rounded = nullptr;
};

/// to[i] = e^(2 keys[i]), i < n; `to` may be `keys`. tanh(q + k) = 1 - 2 / (1 + e^2q e^2k), so with
/// these exponentials computed once a score costs one FMA and half a division per channel. Exact to
/// float rounding while |q| and |k| are below 43, and beyond that unless both are that large with
/// opposite signs.
void attention_exp_keys(const Cpu&, std::int64_t n, const float* keys, float* to);

/// T steps of `rows` queries: query [T,rows,A]. Row r reads the source sentence[r], or r when
/// `sentence` is null. Writes weights [T,rows,heads,S] and context [T,rows,M].
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
/// For training: rows = B, one query per sentence and step.
NMT_KERNEL(attention_backward, const Attention& attention, std::int64_t target_steps,
           const float* query, const float* weights, const AttentionGradient& gradient);
/// Scratch size in floats.
std::int64_t attention_scratch(const Cpu&, const Attention& attention, std::int64_t target_steps);
std::int64_t attention_scratch(const Cuda&, const Attention& attention, std::int64_t target_steps);

}  // namespace nmt::kernels
