#pragma once

#include "cuda/kernels/reduce.h"
#include "cuda/kernels/vector.h"
#include "kernels/math.h"

#include <cmath>
#include <limits>

namespace nmt::cuda {

/// The maximum of numbers and the sum of e^(x - maximum), computed in one pass. A NaN shows in the
/// sum.
struct RunningSum {
  float top = -std::numeric_limits<float>::infinity(), sum = 0.0f;
  /// n numbers with one rescaling of the sum and no other dependence between them.
  template <int n>
  __device__ __forceinline__ void add_all(const Floats<n>& x) {
    float most = top;
#pragma unroll
    for (int e = 0; e < n; ++e) most = x[e] > most ? x[e] : most;
    if (most > top) sum *= math::exp_of_negative(top - most);
    top = most;
    const float base = most == -std::numeric_limits<float>::infinity() ? 0.0f : most;
#pragma unroll
    for (int e = 0; e < n; ++e) {
      sum += math::exp_of_negative(x[e] - base);  // 0 of -infinity
    }
  }
  /// Over all threads of the block.
  __device__ __forceinline__ void join() {
    const float whole = block_max(top);
    sum = block_sum(relative_to(whole));
    top = whole;
  }
  /// Over the lanes of a warp.
  __device__ __forceinline__ void join_lanes() {
    const float whole = warp_max(top);
    sum = warp_sum(relative_to(whole));
    top = whole;
  }
  /// The logarithm of the sum of all e^x.
  __device__ __forceinline__ float log_sum() const {
    return static_cast<float>(static_cast<double>(top) + log(static_cast<double>(sum)));
  }

 private:
  __device__ __forceinline__ float relative_to(float whole) const {
    return sum == 0.0f ? 0.0f : sum * math::exp_of_negative(top - whole);
  }
};

}  // namespace nmt::cuda
