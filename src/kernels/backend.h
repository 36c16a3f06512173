#pragma once

namespace nmt {

class ThreadPool;
class CudaDevice;
namespace kernels {
class ProductLibrary;
}

// A kernel is a plain function overloaded on one of these handles. Every kernel is declared for
// both in one header; a missing one is a link error.

/// The CPU: kernels split their work over this pool, which the handle does not own.
struct Cpu {
  ThreadPool* pool = nullptr;
  /// Null: our own tiles (kernels/products/product_library.h).
  const kernels::ProductLibrary* products = nullptr;
};

/// One CUDA device and its stream (tensor/cuda_device.h), which the handle does not own. Pointers
/// that a kernel gets are into the device's memory unless its declaration says otherwise, and the
/// work is only queued when it returns.
struct Cuda {
  CudaDevice* device = nullptr;
};

}  // namespace nmt

/// Declares a kernel for both backends: NMT_KERNEL(fill, float* x, std::int64_t n, float value);
#define NMT_KERNEL(name, ...)                \
  void name(const ::nmt::Cpu&, __VA_ARGS__); \
  void name(const ::nmt::Cuda&, __VA_ARGS__)
