#pragma once

#include "cuda/kernels/reduce.h"
#include "cuda/runtime/launch.h"

#include <cstdint>

namespace nmt::cuda {

constexpr unsigned add_sum_threads = 256;

// One block.
static __global__ void add_sum_kernel(std::int64_t n, const double* x, double* sum) {
  double mine = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) mine += x[i];
  mine = block_sum(mine);
  if (threadIdx.x == 0) *sum += mine;
}

/// sum += the sum of x[0..n).
inline void add_sum(const Cuda& cuda, std::int64_t n, const double* x, double* sum) {
  launch(add_sum_kernel, 1, add_sum_threads, 0, cuda, n, x, sum);
}

}  // namespace nmt::cuda
