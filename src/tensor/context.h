#pragma once

#include "kernels/handles.h"
#include "tensor/backend.h"
#include "tensor/profile.h"
#include "tensor/tensor.h"

#include <utility>

namespace nmt {

namespace kernels {
class Cudnn;
}

/// What an op needs to run: a device, its arena and the backend's handle. A default context is one
/// of the CPU; make_context() makes those of any device. The owners of the pool, the arena, the
/// CUDA device and cuDNN outlive it.
struct Context {
  Device device;
  const Backend* backend = &cpu_backend;  ///< what the device offers
  Arena* arena = nullptr;
  Cpu cpu;
  Cuda cuda;
  /// Runs the recurrent layers that it supports (kernels/recurrent/cudnn.h); null: our own kernels
  /// run all of them.
  const kernels::Cudnn* cudnn = nullptr;
  /// Type of the matrices of a model frozen for inference: f32; where the backend has
  /// low-precision weights also bf16 (gemm_bf16.h) and i8 (gemm_int8.h).
  Dtype weights = Dtype::f32;
  Profile* profile = nullptr;  ///< measures the parts of every pass, or null

  Tensor empty(Shape shape, Dtype dtype = Dtype::f32) const {
    return {*arena, shape, dtype, device};
  }
};

/// The factory of contexts, the one place that chooses a backend: the CUDA device where `cuda` is
/// given, else the CPU. `arena` holds the memory of that device. `cudnn`: opened for `cuda`, or
/// null.
Context make_context(Arena& arena, const Cpu& cpu, CudaDevice* cuda = nullptr,
                     const kernels::Cudnn* cudnn = nullptr);

/// Calls body with the handle of the context's device: the one place that selects the kernels of a
/// backend.
template <class Body>
decltype(auto) dispatch(const Context& context, Body&& body) {
#if NMT_WITH_CUDA
  if (context.device.kind == DeviceKind::cuda) return std::forward<Body>(body)(context.cuda);
#endif
  NMT_CHECK(context.device.kind == DeviceKind::cpu, "this build has no CUDA backend");
  return std::forward<Body>(body)(context.cpu);
}

}  // namespace nmt
