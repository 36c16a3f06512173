#pragma once

#include "autograd/ops.h"

namespace nmt::ops {

/// Converts a memory to kernel arguments; checks the shapes.
kernels::Attention view_attention(const AttentionShape& shape, const Memory& memory);

}  // namespace nmt::ops
