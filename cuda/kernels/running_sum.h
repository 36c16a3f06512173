#pragma once

#include "cuda/kernels/reduce.h"
#include "cuda/kernels/vector.h"
#include "kernels/math.h"

#include <cmath>
#include <limits>

namespace nmt::cuda {

/// The maximum of numbers and the sum of e^(x - maximum), computed in one pass. A NaN makes the sum
/// NaN.
struct RunningSum {
  float maximum = -std::numeric_limits<float>::infinity(), sum = 0.0f;
  /// Adds n numbers, with one rescaling of the sum.
  template <int n>
  __device__ __forceinline__ void add_all(const Floats<n>& x) {
    float new_maximum = maximum;
#pragma unroll
    for (int e = 0; e < n; ++e) new_maximum = x[e] > new_maximum ? x[e] : new_maximum;
    if (new_maximum > maximum) sum *= math::exp_of_negative(maximum - new_maximum);
    maximum = new_maximum;
    const float base = new_maximum == -std::numeric_limits<float>::infinity() ? 0.0f : new_maximum;
#pragma unroll
    for (int e = 0; e < n; ++e) {
      sum += math::exp_of_negative(x[e] - base);  // 0 of -infinity
    }
  }
  /// Over all threads of the block.
  __device__ __forceinline__ void join() {
    const float total_maximum = block_max(maximum);
    sum = block_sum(relative_to(total_maximum));
    maximum = total_maximum;
  }
  /// Over the lanes of a warp.
  __device__ __forceinline__ void join_lanes() {
    const float total_maximum = warp_max(maximum);
    sum = warp_sum(relative_to(total_maximum));
    maximum = total_maximum;
  }
  /// The logarithm of the sum of all e^x.
  __device__ __forceinline__ float log_sum() const {
    return static_cast<float>(static_cast<double>(maximum) + log(static_cast<double>(sum)));
  }

 private:
  __device__ __forceinline__ float relative_to(float total_maximum) const {
    return sum == 0.0f ? 0.0f : sum * math::exp_of_negative(maximum - total_maximum);
  }
};

}  // namespace nmt::cuda
