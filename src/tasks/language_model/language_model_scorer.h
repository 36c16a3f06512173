#pragma once

#include "model/step_scorer.h"
#include "tasks/language_model/language_model.h"

#include <memory>

namespace nmt {

/// A frozen language model as a scorer of translations, which ignores the sources: log p of the
/// target as a line of its own. For shallow fusion (Gulcehre et al. 2015), as the `added` member of
/// an EnsembleScorer.
class LanguageModelScorer : public StepScorer {
 public:
  /// The model must be frozen and outlive the scorer. `eos`: </s>, the first input.
  LanguageModelScorer(LanguageModel& model, std::int32_t eos);
  /// The same with the weights of `frozen` in a context of its own, for another thread.
  LanguageModelScorer(const LanguageModel& frozen, const Context& context, std::int32_t eos);
  using StepScorer::begin;
  int vocabulary() const override { return model_.vocabulary(); }
  /// Error (usage): attention is asked for.
  std::unique_ptr<Decoding> begin(std::span<const std::vector<std::int32_t>> sources,
                                  bool want_attention) override;

 private:
  std::unique_ptr<LanguageModel> own_;  // null: somebody else's
  LanguageModel& model_;
  std::int32_t eos_;
};

}  // namespace nmt
