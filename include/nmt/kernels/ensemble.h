#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nmt/kernels/backend.h"

namespace nmt::kernels {

/// The scores of one model of an ensemble: log p = logits [rows,V] - log_normalizer [rows].
struct MemberScores {
  const float* logits = nullptr;
  const float* log_normalizer = nullptr;
  double weight = 1;
};

/// Models that an ensemble can have on CUDA.
constexpr std::size_t most_members = 16;

/// out [rows,V] = sum of weight * log p over the members, or, of probabilities, log of the sum of weight * p; sums in double, in the
/// order of the members. `members` lies on the host.
NMT_KERNEL(combine_scores, std::int64_t rows, std::int64_t vocabulary, std::span<const MemberScores> members, bool probabilities, float* out);

}  // namespace nmt::kernels
