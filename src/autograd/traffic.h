#pragma once

#include "tensor/context.h"
#include "tensor/profile.h"

namespace nmt::ops {

/// The memory traffic of reading or writing `tensors` tensors of this size.
inline PartWork traffic(const Tensor& t, int tensors) {
  return {0, 4.0 * tensors * static_cast<double>(t.elements())};
}

}  // namespace nmt::ops
