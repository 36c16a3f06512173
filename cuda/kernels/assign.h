#pragma once

#include "cuda/kernels/vector.h"
#include "kernels/products/bfloat16.h"

namespace nmt::cuda {

/// Stores a number as float32 or bfloat16, for kernels that write either.
__device__ __forceinline__ void assign(float& to, float x) {
  to = x;
}
__device__ __forceinline__ void assign(kernels::Bfloat16& to, float x) {
  to = kernels::to_bf16(x);
}

/// Four numbers, or one, written by one store.
template <class T>
struct alignas(4 * sizeof(T)) Four {
  T value[4];
};
template <int n, class T>
__device__ __forceinline__ void assign_all(T* to, const Floats<n>& x) {
  static_assert(n == 1 || n == 4);
  if constexpr (n == 1) {
    assign(*to, x[0]);
  } else {
    Four<T> four;
#pragma unroll
    for (int e = 0; e < 4; ++e) assign(four.value[e], x[e]);
    *reinterpret_cast<Four<T>*>(to) = four;
  }
}

__device__ __forceinline__ float as_float(float x) {
  return x;
}
__device__ __forceinline__ float as_float(kernels::Bfloat16 x) {
  return kernels::from_bf16(x);
}

}  // namespace nmt::cuda
