#pragma once

#include <span>

namespace nmt {

/// How the log probability of a finished hypothesis becomes the score it is compared by.
/// Y is the number of its target tokens with </s>.
struct Ranking {
  double normalize = 0.0;         ///< Marian: score = log p / Y^normalize; excludes length_penalty
  double length_penalty = 0.0;    ///< GNMT: score = log p / ((5+Y)/6)^length_penalty
  double coverage_penalty = 0.0;  ///< GNMT: beta of coverage()

  /// The divisor: lp(Y) of Wu et al. 2016, eq. 14 (with 5+1 below the fraction, as printed), or
  /// Marian's Y^A.
  double length_divisor(int target_tokens) const;
  /// log p / length_divisor + coverage_penalty * coverage (0 when no coverage is asked for).
  float score(float log_prob, int target_tokens, double coverage) const;
  /// No finished hypothesis that continues one with `log_prob` and ends with at most `longest`
  /// tokens, at least `shortest`, scores more: log probabilities only fall, and coverage is never
  /// positive.
  float bound(float log_prob, int shortest, int longest) const;
};

/// cp of Wu et al. 2016, eq. 14, without beta: sum over source tokens of log(min(sum over target
/// tokens of attention, 1)). attended[i] is the attention that source token i got in all. A token
/// never attended to counts as 1e-10, not as zero.
double coverage(std::span<const double> attended);

}  // namespace nmt
