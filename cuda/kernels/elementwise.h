#pragma once

#include "cuda/runtime/launch.h"

namespace nmt::cuda {

template <class Body>
__global__ void each_kernel(std::int64_t n, Body body) {
  for (std::int64_t i = grid_index(); i < n; i += grid_stride()) body(i);
}

/// body(i) for every i in [0, n), a __device__ lambda: each(cuda, n, [=] __device__(std::int64_t i)
/// { y[i] = x[i]; });
template <class Body>
void each(const Cuda& cuda, std::int64_t n, Body body) {
  constexpr unsigned threads = 256;
  launch(each_kernel<Body>, blocks_for(cuda, n, threads), threads, 0, cuda, n, body);
}

}  // namespace nmt::cuda
