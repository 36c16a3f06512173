#include "app/train/tasks/perplexity_validator.h"

#include "core/error.h"
#include "tasks/language_model/text_score.h"
#include "text/lines.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace nmt::app {

PerplexityValidator::PerplexityValidator(const ModelSpec& model, std::vector<ValidMetric> metrics,
                                         const Vocabulary& vocabulary,
                                         std::vector<std::string> lines, const std::string& name,
                                         Compute& compute, train::StopRequest stop)
    : model_(model),
      metrics_(std::move(metrics)),
      vocabulary_(vocabulary),
      lines_(std::move(lines)),
      compute_(compute),
      stop_(std::move(stop)) {
  check(metrics_);
  if (std::all_of(lines_.begin(), lines_.end(),
                  [this](const std::string& line) { return vocabulary_.encode(line).empty(); }))
    fail(ExitStatus::data, "{}: no line has text", name);
}

void PerplexityValidator::check(const std::vector<ValidMetric>& metrics) {
  if (metrics.empty())
    fail(ExitStatus::usage,
         "valid-metrics: none given, expected at least one of perplexity, cross-entropy");
  for (const ValidMetric metric : metrics)
    if (metric != ValidMetric::perplexity && metric != ValidMetric::cross_entropy)
      fail(ExitStatus::usage,
           "valid-metrics: {} is no metric of a language model, expected perplexity or "
           "cross-entropy",
           name_of(metric));
}

double PerplexityValidator::cross_entropy(const train::CopyWeights& weights,
                                          std::span<const std::string> lines) {
  const std::unique_ptr<Arena> arena = compute_.new_arena();
  const Context context = compute_.context(*arena);
  LanguageModel copy(model_, vocabulary_.size(), context, 0, 0, LanguageModel::Weights::unset);
  weights(copy.parameters());
  copy.freeze();
  ScoringSettings settings;
  settings.parts = validation_parts;
  settings.on_batch = [this] {
    if (stop_.pending() != ExitStatus::ok) throw train::Interrupted{};
  };
  return entropy_per_word(score_lines(copy, vocabulary_, lines, settings));
}

train::ValidationResult PerplexityValidator::validate(const train::CopyWeights& weights,
                                                      const Progress&) {
  const double entropy = cross_entropy(weights, lines_);
  if (metrics_.front() == ValidMetric::perplexity && std::isfinite(entropy) &&
      !std::isfinite(std::exp(entropy)))
    fail(ExitStatus::failed,
         "valid-metrics: the perplexity per word is too large for float64 (cross-entropy {:.1f}); "
         "use --valid-metrics cross-entropy",
         entropy);
  train::ValidationResult result;
  for (const ValidMetric metric : metrics_)
    result.push_back({std::string(name_of(metric)),
                      metric == ValidMetric::perplexity ? std::exp(entropy) : entropy, false});
  return result;
}

void PerplexityValidator::dry_run(const train::CopyWeights& weights) {
  const auto longest =
      std::max_element(lines_.begin(), lines_.end(), [](const auto& a, const auto& b) {
        return (is_blank(a) ? 0 : a.size()) < (is_blank(b) ? 0 : b.size());
      });
  cross_entropy(weights, {&*longest, 1});
}

}  // namespace nmt::app
