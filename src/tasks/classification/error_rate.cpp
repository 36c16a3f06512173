#include "tasks/classification/error_rate.h"

#include "eval/labels.h"
#include "eval/significance.h"

#include <fmt/format.h>

namespace nmt {

std::string ErrorRate::text() const {
  return fmt::format("error rate {:.2f} ± {:.2f} {}", percent, half_width, details);
}

ErrorRate error_rate(const std::vector<std::string>& labels,
                     const std::vector<std::string>& references) {
  constexpr int resamples = 1000;
  const auto metric = error_rate_metric();
  const SentenceCounts counts = sentence_counts(*metric, labels, {references});
  const std::vector<std::int64_t> sum = counts.sum();
  return {metric->score(sum), confidence_interval(*metric, counts, resamples).half_width,
          metric->verbose(sum)};
}

}  // namespace nmt
