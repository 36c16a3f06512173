#include "app/train/tasks/tagging_validator.h"

#include "core/log.h"
#include "tasks/finite_scores.h"
#include "tasks/tagging/tagging_score.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace nmt::app {

// A copy of the model with its own memory, so that the training arena is not affected.
struct TaggingValidator::Copy {
  Copy(const TaggingValidator& validator)
      : arena(validator.compute_.new_arena()),
        tagger(validator.spec_, validator.words_, static_cast<int>(validator.labels_.size()),
               validator.forms_, validator.compute_.context(*arena), 0, Tagger::Weights::unset) {}
  std::unique_ptr<Arena> arena;
  Tagger tagger;
};

TaggingValidator::TaggingValidator(const ModelSpec& spec, int words,
                                   std::vector<std::string> labels, const WordForms& forms,
                                   TaggedCorpus corpus, std::vector<std::string> references,
                                   Compute& compute, const train::StopRequest& stop)
    : spec_(spec),
      words_(words),
      labels_(std::move(labels)),
      forms_(forms),
      corpus_(std::move(corpus)),
      references_(std::move(references)),
      compute_(compute),
      stop_(stop) {}

TaggingValidator::~TaggingValidator() = default;

void TaggingValidator::leave_if_stopped() const {
  if (stop_.pending() != ExitStatus::ok) throw train::Interrupted{};
}

std::unique_ptr<TaggingValidator::Copy> TaggingValidator::copy(
    const train::CopyWeights& weights) const {
  auto copy = std::make_unique<Copy>(*this);
  weights(copy->tagger.parameters());
  return copy;
}

train::ValidationResult TaggingValidator::validate(const train::CopyWeights& weights,
                                                   const Progress&) {
  const auto model = copy(weights);
  const auto values = [](const TaggingScore& score, double value, double cross_entropy) {
    return train::ValidationResult{
        {score.metric == "span F1" ? "span-f1" : "accuracy", value, true},
        {"cross-entropy", cross_entropy, false}};
  };
  try {
    const TaggingResult result = evaluate(model->tagger, corpus_, [this] { leave_if_stopped(); });
    const TaggingScore score =
        tagging_score(labels_, label_lines(result.labels, labels_), references_);
    log::info("{}", score.text());
    return values(score, score.value, result.cross_entropy);
  } catch (const LabelScoreNotFinite& error) {
    log::warn("validation: {}", error.what());
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    return values(tagging_score(labels_, references_, references_), none, none);
  }
}

void TaggingValidator::dry_run(const train::CopyWeights& weights) {
  const auto model = copy(weights);
  const auto longest =
      std::max_element(corpus_.words.begin(), corpus_.words.end(),
                       [](const Ids& a, const Ids& b) { return a.size() < b.size(); });
  tag_all(model->tagger, {&*longest, 1});
}

}  // namespace nmt::app
