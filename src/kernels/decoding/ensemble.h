#pragma once

#include "kernels/handles.h"
#include "kernels/math.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace nmt::kernels {

/// The scores of one model of an ensemble: log p = logits [rows,V] - log_normalizer [rows].
struct MemberScores {
  const float* logits = nullptr;
  const float* log_normalizer = nullptr;
  double weight = 1;
};

/// Maximum number of models of an ensemble on CUDA.
constexpr std::size_t max_members = 16;

/// out [rows,V] = sum over members of weight * log p, or log of the sum of weight * p when
/// `probabilities` is true. Sums in double, in the order of the members. `members` is host memory.
NMT_KERNEL(combine_scores, std::int64_t rows, std::int64_t vocabulary,
           std::span<const MemberScores> members, bool probabilities, float* out);

/// One element of combine_scores(): the combined score of `count` members at row `row` and logits
/// index `i`.
NMT_HOST_DEVICE float combined(const MemberScores* members, int count, std::int64_t row,
                               std::int64_t i, bool probabilities) {
  double sum = 0;
  if (!probabilities) {
    for (int m = 0; m < count; ++m)
      sum += members[m].weight * (members[m].logits[i] - members[m].log_normalizer[row]);
    return static_cast<float>(sum);
  }
  // Relative to the maximum, because e^x may underflow. -inf stays -inf and NaN stays NaN.
  constexpr float none = -std::numeric_limits<float>::infinity();
  float greatest = none;
  for (int m = 0; m < count; ++m) {
    const float log_prob = members[m].logits[i] - members[m].log_normalizer[row];
    if (log_prob > greatest) greatest = log_prob;
  }
  const double base = greatest == none ? 0.0 : static_cast<double>(greatest);
  for (int m = 0; m < count; ++m)
    sum += members[m].weight *
           math::exp(static_cast<double>(members[m].logits[i] - members[m].log_normalizer[row]) -
                     base);
  return static_cast<float>(base + std::log(sum));
}

}  // namespace nmt::kernels
