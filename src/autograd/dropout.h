#pragma once

#include "autograd/ops/plain.h"
#include "kernels/pointwise.h"

namespace nmt::ops {

/// The next dropout of the pass, for a value of this shape; see dropout() in ops/plain.h. p 0:
/// none. The rows must live as long as the kernels that draw it.
kernels::Dropout next_dropout(Tape& tape, const Shape& shape, float p, const Tensor& rows = {});

}  // namespace nmt::ops
