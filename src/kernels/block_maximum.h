#pragma once

#include <cstdint>
#include <limits>

namespace nmt::kernels {

/// The maximum of n >= 1 elements; NaN if any of them is NaN.
inline float block_maximum(const float* x, std::int64_t n) {
  float maximum = -std::numeric_limits<float>::infinity();
  int nans = 0;
#pragma omp simd reduction(max : maximum) reduction(| : nans)
  for (std::int64_t i = 0; i < n; ++i) {
    maximum = x[i] > maximum ? x[i] : maximum;
    nans |= x[i] != x[i] ? 1 : 0;
  }
  return nans != 0 ? std::numeric_limits<float>::quiet_NaN() : maximum;
}

}  // namespace nmt::kernels
