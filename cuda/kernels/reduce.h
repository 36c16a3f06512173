#pragma once

// Sums and maxima over a warp and over a block, in one fixed order. Every thread of the block calls
// them and receives the result.

#include "cuda/runtime/launch.h"

#include <limits>

namespace nmt::cuda {

struct Sum {
  template <class T>
  __device__ __forceinline__ static T join(T a, T b) {
    return a + b;
  }
  template <class T>
  __device__ __forceinline__ static T none() {
    return T(0);
  }
};
struct Max {
  template <class T>
  __device__ __forceinline__ static T join(T a, T b) {
    return a > b ? a : b;
  }
  template <class T>
  __device__ __forceinline__ static T none() {
    return -std::numeric_limits<T>::infinity();
  }
};

/// Over the 32 lanes of a warp, all of which call it.
template <class Operation, class T>
__device__ __forceinline__ T warp_reduce(T value) {
#pragma unroll
  for (int distance = warp_size / 2; distance > 0; distance /= 2)
    value = Operation::join(value, __shfl_xor_sync(all_lanes, value, distance));
  return value;
}
template <class T>
__device__ __forceinline__ T warp_sum(T value) {
  return warp_reduce<Sum>(value);
}
template <class T>
__device__ __forceinline__ T warp_max(T value) {
  return warp_reduce<Max>(value);
}

/// Over a block of whole warps along x. Two barriers; may be called again immediately.
template <class Operation, class T>
__device__ __forceinline__ T block_reduce(T value) {
  NMT_SHARED(parts, T[warp_size]);
  const unsigned lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size,
                 warps = blockDim.x / warp_size;
  value = warp_reduce<Operation>(value);
  if (warps == 1) return value;
  if (lane == 0) parts[warp] = value;
  __syncthreads();
  value = warp_reduce<Operation>(lane < warps ? parts[lane] : Operation::template none<T>());
  __syncthreads();
  return value;
}
template <class T>
__device__ __forceinline__ T block_sum(T value) {
  return block_reduce<Sum>(value);
}
template <class T>
__device__ __forceinline__ T block_max(T value) {
  return block_reduce<Max>(value);
}

/// Sums of n values with the barriers of one sum.
template <int n>
__device__ __forceinline__ void block_sums(float (&value)[n]) {
  NMT_SHARED(parts, float[warp_size][n]);
  const unsigned lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size,
                 warps = blockDim.x / warp_size;
#pragma unroll
  for (int i = 0; i < n; ++i) value[i] = warp_sum(value[i]);
  if (warps == 1) return;
  if (lane == 0)
    for (int i = 0; i < n; ++i) parts[warp][i] = value[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < n; ++i) value[i] = warp_sum(lane < warps ? parts[lane][i] : 0.0f);
  __syncthreads();
}

/// Threads of a block for rows of n elements: whole warps, at most `max_threads`.
inline unsigned threads_for(std::int64_t n, std::int64_t max_threads = 256) {
  return static_cast<unsigned>(
      std::clamp<std::int64_t>(divide_up(n, warp_size) * warp_size, warp_size, max_threads));
}

}  // namespace nmt::cuda
