#pragma once

#include <functional>
#include <initializer_list>

#include "nmt/tensor/context.h"
#include "nmt/tensor/cuda_device.h"

namespace nmt {

/// Does work of a context that may recur, as CudaDevice::repeat() has it; plainly on the CPU and where a profile looks.
inline void repeat(const Context& context, std::initializer_list<std::int64_t> key, const std::function<void()>& work) {
  if (context.device.kind == DeviceKind::cpu || context.profile) return work();
  context.cuda.device->repeat({key.begin(), key.size()}, work);
}

}  // namespace nmt
