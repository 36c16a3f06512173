#pragma once

#include "eval/chrf.h"

#include <vector>

namespace nmt {

/// chrF (Popovic 2015, eq. 1): the F-score of n-gram precision and recall, averaged over the orders
/// that both sides have. `sums` holds hypothesis n-grams, reference n-grams and matches of each
/// order. Real is double for counts, float for numpy's resampled sums. `nothing` is set when there
/// is no match.
template <class Real>
double chrf_formula(const std::vector<Real>& sums, const ChrfOptions& options, bool& nothing) {
  Real precision = 0, recall = 0;
  int orders = 0;
  for (std::size_t i = 0; i + 2 < sums.size(); i += 3) {
    const Real hypothesis = sums[i], reference = sums[i + 1], matches = sums[i + 2];
    if (hypothesis == 0 || reference == 0) continue;
    precision += matches / hypothesis;
    recall += matches / reference;
    ++orders;
  }
  if (orders > 0) {
    precision /= static_cast<Real>(orders);
    recall /= static_cast<Real>(orders);
  }
  nothing = precision + recall == 0;
  if (nothing) return 0;
  const Real beta = static_cast<Real>(options.beta), factor = beta * beta;
  Real score = (1 + factor) * precision * recall;
  score /= factor * precision + recall;
  return static_cast<double>(100 * score);
}

}  // namespace nmt
