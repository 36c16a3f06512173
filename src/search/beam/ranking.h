#pragma once

#include <span>

namespace nmt {

/// How finished hypotheses are scored. Y is the number of target tokens including </s>.
struct Ranking {
  /// Marian: score = log p / Y^normalize; not together with length_penalty.
  double normalize = 0.0;
  double length_penalty = 0.0;    ///< GNMT: score = log p / ((5+Y)/6)^length_penalty
  double coverage_penalty = 0.0;  ///< GNMT: beta of coverage()

  /// The length penalty: lp(Y) of Wu et al. 2016, eq. 14 (denominator 5+1, as printed), or Marian's
  /// Y^A.
  double length_divisor(int target_tokens) const;
  /// log p / length_divisor + coverage_penalty * coverage; coverage is 0 when unused.
  float score(float log_prob, int target_tokens, double coverage) const;
  /// Upper bound of the score of any completion, with `shortest` to `longest` tokens, of a
  /// hypothesis with `log_prob`: log probabilities only decrease, and coverage is never positive.
  float bound(float log_prob, int shortest, int longest) const;
};

/// cp of Wu et al. 2016, eq. 14, without beta: sum over source tokens of log(min(attended[i], 1)).
/// attended[i] is the total attention to source token i over all target tokens, at least 1e-10.
double coverage(std::span<const double> attended);

}  // namespace nmt
