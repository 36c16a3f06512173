#include "app/train/tasks/error_rate_validator.h"

#include "core/log.h"
#include "tasks/classification/error_rate.h"
#include "tasks/finite_scores.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace nmt::app {
ErrorRateValidator::ErrorRateValidator(const ModelSpec& spec, int vocabulary,
                                       std::vector<std::string> names, LabeledCorpus corpus,
                                       std::vector<std::string> references, Compute& compute,
                                       const train::StopRequest& stop)
    : spec_(spec),
      vocabulary_(vocabulary),
      names_(std::move(names)),
      corpus_(std::move(corpus)),
      references_(std::move(references)),
      compute_(compute),
      stop_(stop) {}

// With a copy of the model in its own memory, so that the training arena is not affected.
ClassificationResult ErrorRateValidator::run(const train::CopyWeights& weights,
                                             const LabeledCorpus& corpus) const {
  const std::unique_ptr<Arena> arena = compute_.new_arena();
  Classifier copy(spec_, vocabulary_, static_cast<int>(names_.size()), compute_.context(*arena), 0,
                  Classifier::Weights::unset);
  weights(copy.parameters());
  return evaluate(copy, corpus, [this] {
    if (stop_.pending() != ExitStatus::ok) throw train::Interrupted{};
  });
}

train::ValidationResult ErrorRateValidator::validate(const train::CopyWeights& weights,
                                                     const Progress&) {
  const auto values = [](double rate, double cross_entropy) {
    return train::ValidationResult{{"error-rate", rate, false},
                                   {"cross-entropy", cross_entropy, false}};
  };
  try {
    const ClassificationResult result = run(weights, corpus_);
    std::vector<std::string> labels;
    for (const std::int32_t label : result.labels)
      labels.push_back(names_.at(static_cast<std::size_t>(label)));
    const ErrorRate rate = error_rate(labels, references_);
    log::info("{}", rate.text());
    return values(rate.percent, result.cross_entropy);
  } catch (const LabelScoreNotFinite& error) {
    log::warn("validation: {}", error.what());
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    return values(none, none);
  }
}

void ErrorRateValidator::dry_run(const train::CopyWeights& weights) {
  const auto longest =
      std::max_element(corpus_.texts.begin(), corpus_.texts.end(),
                       [](const Ids& a, const Ids& b) { return a.size() < b.size(); });
  run(weights, {{*longest}, {0}});
}

}  // namespace nmt::app
