#pragma once

#include <cstdint>
#include <vector>

namespace nmt {

/// The scores of a sentence's labels: of label j at step t, values[t * stride + j].
struct LabelScores {
  const float* values = nullptr;
  std::int64_t steps = 0, stride = 0, labels = 0;
};

/// The label with the highest score at each step; the first of equal ones.
std::vector<std::int32_t> best_labels(const LabelScores& scores);
/// The labels with the highest score of a linear-chain CRF (Viterbi 1967), with transitions [L+2,L]
/// as kernels/label_loss.h describes them; computed in double.
std::vector<std::int32_t> best_labels(const LabelScores& scores, const float* transitions);

}  // namespace nmt
