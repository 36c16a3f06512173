#pragma once

#include "cuda/runtime/launch.h"
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

}  // namespace nmt::cuda
