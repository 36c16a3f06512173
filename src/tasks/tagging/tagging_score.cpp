#include "tasks/tagging/tagging_score.h"

#include "eval/labels.h"
#include "eval/significance.h"

#include <fmt/format.h>

namespace nmt {

std::string TaggingScore::text() const {
  return fmt::format("{} {:.2f} ± {:.2f} {}", metric, value, half_width, details);
}

TaggingScore tagging_score(const std::vector<std::string>& tags,
                           const std::vector<std::string>& hypotheses,
                           const std::vector<std::string>& references) {
  constexpr int resamples = 1000;
  const auto metric = are_span_labels(tags) ? span_f1_metric() : accuracy_metric();
  const SentenceCounts counts = sentence_counts(*metric, hypotheses, {references});
  const std::vector<std::int64_t> sum = counts.sum();
  return {metric->name(), metric->score(sum),
          confidence_interval(*metric, counts, resamples).half_width, metric->verbose(sum)};
}

}  // namespace nmt
