#pragma once

#include "kernels/attention.h"
#include "kernels/recurrent/recurrence.h"

#include <cstdint>

namespace nmt::kernels {

/// The conditional (two-unit) decoder layer (Zhang et al., ATR, EMNLP 2018, section 4.1) as one
/// loop over the steps
///   s = lower(h', y);  c = attention(s Wq) Wo;  h = higher(s, c Wc)
/// Wo is the output projection of the heads (Vaswani et al. 2017, section 3.2.2), or left out.
/// On the CPU each thread runs its share of the rows through all steps.
struct Conditional {
  Cell lower, higher;  ///< the same unit, width and groups
  Attention attention;
  std::int64_t steps = 0;     ///< T
  std::int64_t batch = 0;     ///< rows: sentences in training, hypotheses in search
  std::int64_t position = 0;  ///< of step 0 in the sentence
  bool keep = true;           ///< records hold all steps (training) or only one (inference)
  const float* x = nullptr;   ///< [T,B,inputs*H] the lower unit's projections
  /// [B] source sentence of each row; null: row b attends to sentence b.
  const std::int32_t* sentence = nullptr;
  PackedWeight query;    ///< Wq [H,A]
  PackedWeight output;   ///< Wo [V,M], V the attention's width; read if `headed` is set
  PackedWeight context;  ///< Wc [M, inputs*H], with the higher cell's groups and rearrangement
  const float* context_bias = nullptr;  ///< [inputs*H] or null
  /// [inputs*H] layer normalization of each plane of cWc, or null: off.
  const float* context_gain = nullptr;
  const float* context_norm_bias = nullptr;
  const float* query_transposed = nullptr;    ///< backward: packed [A,H]
  const float* output_transposed = nullptr;   ///< backward: packed [M,V]
  const float* context_transposed = nullptr;  ///< backward: packed [inputs*H, M]
  const float* initial[max_states]{};         ///< [B,H]
  std::int64_t output_width = 0;              ///< M, with an output projection

  float* states[max_states]{};  ///< [T,B,H] the higher unit's, written
  float* contexts = nullptr;    ///< [T,B,M], written
  float* weights = nullptr;     ///< [T,B,heads,S], written

  float* middle[max_states]{};           ///< record [.., B,H] the lower unit's states
  float* queries = nullptr;              ///< record [.., B,A]
  float* headed = nullptr;               ///< record [.., B,V] attention before Wo; null: no Wo
  float* contexts_rearranged = nullptr;  ///< record [.., B,M] where the context is rearranged
  float* xc = nullptr;                   ///< record [.., B,inputs*H]
  float* xc_normal = nullptr;            ///< record [.., B,inputs*H] with layer normalization
  float* xc_rstd = nullptr;              ///< record [.., B,inputs]
  const Bfloat16* x_rounded = nullptr;   ///< instead of x
  PendingNorm x_norm;                    ///< of x, with T = 1
  Bfloat16 *states_rounded = nullptr, *middle_rounded = nullptr;  ///< of states[0] and middle[0]
  /// Of `headed`, or without it of `contexts` where the context is not rearranged.
  Bfloat16* attended_rounded = nullptr;
  CellRecord lower_record, higher_record;

  /// M, the width of the contexts.
  std::int64_t context_width() const { return headed ? output_width : attention.width; }
};

struct ConditionalGradient {
  const float* dh = nullptr;         ///< [T,B,H]
  const float* dcontexts = nullptr;  ///< [T,B,M] or null
  float* dinitial[max_states]{};     ///< [B,H], written
  CellGradient lower;                ///< dx: gradient of x
  CellGradient higher;               ///< dx: gradient of c Wc, before bias and normalization
  float* dqueries = nullptr;         ///< [T,B,A], written
  Bfloat16* dqueries_rounded = nullptr;
  /// [T,B,M] whole gradient of the contexts, written; with an output projection.
  float* doutputs = nullptr;
  float* dkeys = nullptr;          ///< [S,B,A], added to
  float* dmemory = nullptr;        ///< [S,B,V], added to, or written where writes_memory
  float* dv = nullptr;             ///< [A], added to
  float* dcontext_gain = nullptr;  ///< [inputs*H], added to
  float* dcontext_norm_bias = nullptr;
  float* scratch = nullptr;  ///< conditional_scratch() floats
  bool writes_memory = false;
};

void conditional_forward(const Cpu&, const Conditional&);
void conditional_forward(const Cuda&, const Conditional&);
void conditional_backward(const Cpu&, const Conditional&, const ConditionalGradient&);
void conditional_backward(const Cuda&, const Conditional&, const ConditionalGradient&);
std::int64_t conditional_scratch(const Cpu&, const Conditional&);
std::int64_t conditional_scratch(const Cuda&, const Conditional&);

}  // namespace nmt::kernels
