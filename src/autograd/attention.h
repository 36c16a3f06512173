#pragma once

#include "autograd/ops.h"

namespace nmt::ops {

/// The kernels' view of a memory; checks that the shapes fit.
kernels::Attention view_attention(const AttentionShape& shape, const Memory& memory);

}  // namespace nmt::ops
