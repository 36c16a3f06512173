#include "app/train/tasks/tagging_validator.h"

#include "core/log.h"
#include "tasks/tagging/tagging_score.h"

#include <algorithm>
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
  const TaggingResult result = evaluate(model->tagger, corpus_, [this] { leave_if_stopped(); });
  const TaggingScore score =
      tagging_score(labels_, label_lines(result.labels, labels_), references_);
  log::info("{}", score.text());
  return {{score.metric == "span F1" ? "span-f1" : "accuracy", score.value, true},
          {"cross-entropy", result.cross_entropy, false}};
}

void TaggingValidator::dry_run(const train::CopyWeights& weights) {
  const auto model = copy(weights);
  const auto longest =
      std::max_element(corpus_.words.begin(), corpus_.words.end(),
                       [](const Ids& a, const Ids& b) { return a.size() < b.size(); });
  tag_all(model->tagger, {&*longest, 1});
}

}  // namespace nmt::app
