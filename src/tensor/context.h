#pragma once

#include "kernels/backend.h"
#include "tensor/profile.h"
#include "tensor/tensor.h"

#include <utility>

namespace nmt {

/// What an op needs to run: a device, its arena and the backend's handle. The owner of the pool and
/// of the arena outlives it.
struct Context {
  Device device;
  Arena* arena = nullptr;
  Cpu cpu;
  Cuda cuda;
  Dtype weights = Dtype::f32;  ///< of the matrices of a model frozen for inference: f32; on the CPU
                               ///< also bf16 (gemm_bf16.h), i8 (gemm_int8.h)
  Profile* profile = nullptr;  ///< hears of the parts of every pass, or null

  Tensor empty(Shape shape, Dtype dtype = Dtype::f32) const {
    return {*arena, shape, dtype, device};
  }
};

/// Calls body with the handle of the context's device. The one place where the backends are told
/// apart.
template <class Body>
decltype(auto) dispatch(const Context& context, Body&& body) {
#if NMT_WITH_CUDA
  if (context.device.kind == DeviceKind::cuda) return std::forward<Body>(body)(context.cuda);
#endif
  NMT_CHECK(context.device.kind == DeviceKind::cpu, "this build has no CUDA backend");
  return std::forward<Body>(body)(context.cpu);
}

}  // namespace nmt
