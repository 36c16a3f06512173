#pragma once

#include "tensor/context.h"
#include "tensor/cuda_device.h"

#include <functional>
#include <initializer_list>

namespace nmt {

/// Does work of a context that may recur, as CudaDevice::repeat() has it; plainly on the CPU and
/// where a profile looks.
inline void repeat(const Context& context, std::initializer_list<std::int64_t> key,
                   const std::function<void()>& work) {
  if (context.device.kind == DeviceKind::cpu || context.profile) return work();
  context.cuda.device->repeat({key.begin(), key.size()}, work);
}

}  // namespace nmt
