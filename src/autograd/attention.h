#pragma once

#include "autograd/ops/attention.h"

namespace nmt::ops {

/// Converts a memory to kernel arguments for `rows` queries; checks the shapes.
kernels::Attention view_attention(const AttentionShape& shape, const Memory& memory,
                                  std::int64_t rows);
/// Adds the cost of guided alignment, if there is one, for weights [T,B,heads,S].
void add_link_cost(const Tape& tape, const kernels::Attention& attention, const Memory& memory,
                   const Tensor& weights);

}  // namespace nmt::ops
