#pragma once

#include "kernels/handles.h"

#include <cstdint>

namespace nmt::kernels {

/// The shape of multi-head self-attention (Vaswani et al. 2017, section 3.2) over padded sentences.
/// Queries, keys and values are one tensor [T,B,heads,3,size]: each head's query, key and value
/// side by side, so that all products of a batch are at equal distances.
struct SelfAttention {
  std::int64_t steps = 0;      ///< T
  std::int64_t sentences = 0;  ///< B
  std::int64_t heads = 1;
  std::int64_t size = 0;                  ///< of a head
  const std::int32_t* lengths = nullptr;  ///< [B]

  std::int64_t groups() const { return sentences * heads; }
  std::int64_t width() const { return heads * size; }
};

/// scores [B,heads,T,T], of queries by keys, to weights in place: each query's softmax over the
/// first lengths[b] keys of score / sqrt(size). Keys of padding and all keys of a padded query have
/// weight 0.
NMT_KERNEL(self_attention_softmax, const SelfAttention& shape, float* scores);
/// Gradients of the weights [B,heads,T,T] to those of the scores, in place.
NMT_KERNEL(self_attention_softmax_backward, const SelfAttention& shape, const float* weights,
           float* gradient);

/// Rotary positions (Su et al. 2021, eq. 34): turns channels i and i + size/2 of each query and key
/// [T,B,heads,3,size] by the angle of step t and channel i; `back` turns by its negative, which is
/// the gradient. Values are copied. turns [T,size]: the cosines of the size/2 channels, then the
/// sines. y may be x.
NMT_KERNEL(rotate, const SelfAttention& shape, const float* turns, bool back, const float* x,
           float* y);

}  // namespace nmt::kernels
