#pragma once

#include "core/error.h"

#include <cmath>
#include <span>

namespace nmt {

/// The error (failed) of a tagger or classifier whose scores are NaN or infinite.
class LabelScoreNotFinite : public Error {
 public:
  explicit LabelScoreNotFinite(const std::string& message) : Error(ExitStatus::failed, message) {}
};

/// Throws LabelScoreNotFinite if one of the scores is.
inline void require_finite(std::span<const float> scores) {
  for (const float score : scores)
    if (!std::isfinite(score))
      throw LabelScoreNotFinite(fmt::format(
          "the model gave a label the score {}: a weight or a state is not finite; train with a "
          "lower learn-rate, with layer-normalization, or with another unit",
          score));
}

}  // namespace nmt
