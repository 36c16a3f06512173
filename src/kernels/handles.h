#pragma once

namespace nmt {

class ThreadPool;
class CudaDevice;
namespace kernels {
class ProductMethod;
}

// A kernel is a plain function overloaded on one of these handles. One header declares every kernel
// for both backends, so a missing implementation is a link error.

/// The CPU. Kernels split their work over this pool; the handle does not own it.
struct Cpu {
  ThreadPool* pool = nullptr;
  /// How products are computed (product_method.h); null: by own tiles in float32.
  const kernels::ProductMethod* products = nullptr;
};

/// A CUDA device and its stream (tensor/cuda_device.h); the handle does not own it. Pointer
/// arguments are device memory unless the declaration says otherwise. Kernels are asynchronous:
/// they only enqueue work.
struct Cuda {
  CudaDevice* device = nullptr;
};

}  // namespace nmt

/// Declares a kernel for both backends: NMT_KERNEL(fill, float* x, std::int64_t n, float value);
#define NMT_KERNEL(name, ...)                \
  void name(const ::nmt::Cpu&, __VA_ARGS__); \
  void name(const ::nmt::Cuda&, __VA_ARGS__)
