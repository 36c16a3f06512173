#include "search/beam/ranking.h"

#include <algorithm>
#include <cmath>

namespace nmt {

double Ranking::length_divisor(int target_tokens) const {
  if (normalize != 0.0) return std::pow(target_tokens, normalize);
  if (length_penalty != 0.0)
    return std::pow((5.0 + target_tokens) / (5.0 + 1.0), length_penalty);  // eq. 14
  return 1.0;
}

float Ranking::score(float log_prob, int target_tokens, double covered) const {
  double score = log_prob / length_divisor(target_tokens);
  if (coverage_penalty != 0.0) score += coverage_penalty * covered;
  return static_cast<float>(score);
}

float Ranking::bound(float log_prob, int shortest, int longest) const {
  // A negative sum loses least at the maximum length; a positive sum is a rounding error and gains
  // most at the minimum length.
  return static_cast<float>(log_prob / length_divisor(log_prob > 0.0f ? shortest : longest));
}

double coverage(std::span<const double> attended) {
  double sum = 0.0;
  for (const double attention : attended)
    sum += std::log(std::clamp(attention, 1e-10, 1.0));  // eq. 14
  return sum;
}

}  // namespace nmt
