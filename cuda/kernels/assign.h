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

__device__ __forceinline__ float as_float(float x) {
  return x;
}
__device__ __forceinline__ float as_float(kernels::Bfloat16 x) {
  return kernels::from_bf16(x);
}

/// n numbers as they are stored, for one load or store. Until they are converted, no instruction
/// waits for the load.
template <int n, class T>
struct alignas(n * sizeof(T)) Stored {
  T value[n];
};
template <int n, class T>
__device__ __forceinline__ Stored<n, T> load_stored(const T* x) {
  return *reinterpret_cast<const Stored<n, T>*>(x);
}
template <int n, class T>
__device__ __forceinline__ Floats<n> widened(const Stored<n, T>& x) {
  Floats<n> value;
#pragma unroll
  for (int e = 0; e < n; ++e) value[e] = as_float(x.value[e]);
  return value;
}

/// n numbers, rounded where T is bfloat16. Bfloat16 numbers are stored in pairs: the compiler does
/// not join single stores.
template <int n, class T>
__device__ __forceinline__ void assign_all(T* to, const Floats<n>& x) {
  if constexpr (n % 2 == 0 && sizeof(T) == 2) {
    Stored<n / 2, std::uint32_t> pairs;
#pragma unroll
    for (int e = 0; e < n; e += 2) pairs.value[e / 2] = kernels::to_bf16_pair(x[e], x[e + 1]);
    *reinterpret_cast<Stored<n / 2, std::uint32_t>*>(to) = pairs;
  } else {
    Stored<n, T> stored;
#pragma unroll
    for (int e = 0; e < n; ++e) assign(stored.value[e], x[e]);
    *reinterpret_cast<Stored<n, T>*>(to) = stored;
  }
}

/// Loads n numbers that assign_all() has stored.
template <int n, class T>
__device__ __forceinline__ Floats<n> read_all(const T* x) {
  return widened(load_stored<n>(x));
}

/// x rounded to T.
template <class T>
__device__ __forceinline__ float as_stored(float x) {
  T stored;
  assign(stored, x);
  return as_float(stored);
}

}  // namespace nmt::cuda
