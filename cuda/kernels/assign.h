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

/// n numbers that stand as assign_all() stores them.
template <int n>
__device__ __forceinline__ Floats<n> read_all(const float* x) {
  return load<n>(x);
}
template <int n>
__device__ __forceinline__ Floats<n> read_all(const kernels::Bfloat16* x) {
  static_assert(n == 1 || n == 4);
  Floats<n> value;
  if constexpr (n == 1) {
    value[0] = kernels::from_bf16(*x);
  } else {
    const auto four = *reinterpret_cast<const Four<kernels::Bfloat16>*>(x);
#pragma unroll
    for (int e = 0; e < 4; ++e) value[e] = kernels::from_bf16(four.value[e]);
  }
  return value;
}

__device__ __forceinline__ float as_float(float x) {
  return x;
}
__device__ __forceinline__ float as_float(kernels::Bfloat16 x) {
  return kernels::from_bf16(x);
}

/// x as assign() stores it.
template <class T>
__device__ __forceinline__ float as_stored(float x) {
  T stored;
  assign(stored, x);
  return as_float(stored);
}

}  // namespace nmt::cuda
