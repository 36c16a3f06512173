#pragma once

// The backward pass of attention in two halves: gradients that a step needs immediately, and those
// that can be computed after the last step, so that a decoder's loop does not read and write the
// gradients of keys and memory at every step.

#include "kernels/attention.h"
#include "kernels/products/bfloat16.h"

namespace nmt::cuda {

/// kernels::attention_forward() with the context rounded too, for products; or null.
void attention_forward(const Cuda& cuda, const kernels::Attention& attention,
                       std::int64_t target_steps, std::int64_t rows, const std::int32_t* sentence,
                       const float* query, float* weights, float* context,
                       kernels::Bfloat16* rounded);

/// dscores [T,B,heads,S], the gradient of the scores (dot: times 1/sqrt(A/heads)), and dquery
/// [T,B,A], with a rounded copy or without; all written.
void attention_backward_queries(const Cuda& cuda, const kernels::Attention& attention,
                                std::int64_t target_steps, const float* query, const float* weights,
                                const float* dcontext, float* dscores, float* dquery,
                                kernels::Bfloat16* dquery_rounded = nullptr);
/// The gradients of keys, memory and v, added to those of `gradient`, from the dcontext and dscores
/// of all steps; that of the memory is overwritten where `writes_memory`. gradient.scratch:
/// attention_sources_scratch() floats.
void attention_backward_sources(const Cuda& cuda, const kernels::Attention& attention,
                                std::int64_t target_steps, const float* query, const float* weights,
                                const float* dscores, const kernels::AttentionGradient& gradient,
                                bool writes_memory = false);
std::int64_t attention_sources_scratch(const kernels::Attention& attention);

}  // namespace nmt::cuda
