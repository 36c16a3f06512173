#pragma once

// 16-byte accesses: four floats at once where the alignment of a row allows it.

#include "cuda/runtime/launch.h"

namespace nmt::cuda {

template <int n>
struct alignas(n * sizeof(float)) Floats {
  float value[n];
  NMT_HOST_DEVICE float& operator[](int i) { return value[i]; }
  NMT_HOST_DEVICE float operator[](int i) const { return value[i]; }
};
using Float4 = Floats<4>;

/// n floats from an address that is a multiple of their size.
template <int n>
__device__ __forceinline__ Floats<n> load(const float* x) {
  return *reinterpret_cast<const Floats<n>*>(x);
}
/// The same from memory that the kernel does not write: earlier stores do not delay the load.
template <int n>
__device__ __forceinline__ Floats<n> load_constant(const float* x) {
#if defined(__CUDA_ARCH__)
  if constexpr (n == 4) {
    const float4 four = __ldg(reinterpret_cast<const float4*>(x));
    return {{four.x, four.y, four.z, four.w}};
  }
#endif
  return load<n>(x);
}
template <int n>
__device__ __forceinline__ void store(float* x, const Floats<n>& value) {
  *reinterpret_cast<Floats<n>*>(x) = value;
}
__device__ __forceinline__ Float4 load4(const float* x) {
  return load<4>(x);
}
__device__ __forceinline__ void store4(float* x, const Float4& value) {
  store<4>(x, value);
}

/// Keeps the compiler from moving loads and stores across this point.
__device__ __forceinline__ void keep_order() {
  asm volatile("" ::: "memory");
}

/// Prefetches the cache line of x into the L2 cache. The emulator has no caches.
__device__ __forceinline__ void prefetch_l2([[maybe_unused]] const void* x) {
#if defined(__CUDA_ARCH__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(x));
#endif
}

/// Whether rows of `width` floats that start at these addresses can be read four at a time.
template <class... Pointers>
bool by_fours(std::int64_t width, const Pointers*... pointers) {
  return width % 4 == 0 && ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

}  // namespace nmt::cuda
