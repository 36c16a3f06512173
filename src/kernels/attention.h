#pragma once

#include "core/host_device.h"
#include "kernels/handles.h"
#include "kernels/math.h"
#include "kernels/products/bfloat16.h"

#include <cstddef>
#include <cstdint>

namespace nmt::kernels {

enum class AttentionKind { additive, dot };

/// Guided alignment of one head (Garg et al. 2019, section 4): the source positions that target
/// positions are linked to. The n links of a row are its targets 1/n; rows without links cost
/// nothing. The cost is their cross-entropy with the weights (Liu et al. 2016, section 3; Chen et
/// al. 2016, eq. 6), times `weight`.
struct AttentionLinks {
  /// [T*B+1]: row t * B + b is linked to sources[offsets[row]] up to sources[offsets[row + 1]];
  /// null: no guided alignment.
  const std::int32_t* offsets = nullptr;
  const std::int32_t* sources = nullptr;  ///< positions of the sentence, each once in a row
  std::int32_t head = 0;
  float weight = 0;
};

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
  AttentionLinks links = {};  ///< whose gradient the backward pass adds to that of the scores
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
/// Adds the cross-entropy of links and weights [rows,heads,S], without `weight`, to sum f64 [1].
/// scratch: f64 [rows].
NMT_KERNEL(attention_link_cost, const AttentionLinks& links, std::int64_t rows, std::int64_t heads,
           std::int64_t steps, const float* weights, double* scratch, double* sum);
/// Scratch size in floats.
std::int64_t attention_scratch(const Cpu&, const Attention& attention, std::int64_t target_steps);
std::int64_t attention_scratch(const Cuda&, const Attention& attention, std::int64_t target_steps);

/// attention_link_cost() of one row, whose weights [S] are those of the head.
NMT_HOST_DEVICE double link_cost_of_row(const AttentionLinks& links, std::int64_t row,
                                        const float* weights) {
  const std::int32_t begin = links.offsets[row], end = links.offsets[row + 1];
  double sum = 0;
  for (std::int32_t i = begin; i < end; ++i)
    sum -= static_cast<double>(math::log(weights[links.sources[i]]));
  return end > begin ? sum / static_cast<double>(end - begin) : 0.0;
}

}  // namespace nmt::kernels
