#pragma once

#include "kernels/math.h"
#include "kernels/sums.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace nmt::kernels {
namespace {

// Elements that are computed together; a shorter rest is computed as one such block.
constexpr std::int64_t softmax_block = 16;

inline void exponentials(float scale, float largest, float* x) {
#pragma omp simd
  for (std::int64_t i = 0; i < softmax_block; ++i)
    x[i] = math::exp_of_negative<float>(scale * (x[i] - largest));
}

/// x = softmax(scale x), n >= 1, scale > 0. The sum runs over these elements alone, in the order of
/// sums.h, so padding behind them changes nothing.
inline void softmax_row(std::int64_t n, float scale, float* x) {
  float largest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, x[i]);
  std::int64_t done = 0;
  for (; done + softmax_block <= n; done += softmax_block) exponentials(scale, largest, x + done);
  if (done < n) {
    float rest[softmax_block] = {};
    std::copy(x + done, x + n, rest);
    exponentials(scale, largest, rest);
    std::copy_n(rest, n - done, x + done);
  }
  const float inverse = 1.0f / sum_of(n, x);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x[i] *= inverse;
}

}  // namespace
}  // namespace nmt::kernels
