#pragma once

#include "model/model.h"
#include "model/step_scorer.h"

#include <memory>
#include <string>

namespace nmt {

/// A StepScorer for a frozen model.
class ModelScorer : public StepScorer {
 public:
  /// The model must be frozen and outlive the scorer.
  ModelScorer(Model& model, std::int32_t bos, std::int32_t eos);
  /// The same with the weights of `frozen` in a context of its own, for another thread (Model).
  ModelScorer(const Model& frozen, const Context& context, std::int32_t bos, std::int32_t eos);
  using StepScorer::begin;
  Model& model() { return model_; }
  int vocabulary() const override;
  std::unique_ptr<Decoding> begin(std::span<const std::vector<std::int32_t>> sources,
                                  bool want_attention) override;

 private:
  std::unique_ptr<Model> own_;  // null: somebody else's
  Model& model_;
  std::int32_t bos_, eos_;
};

}  // namespace nmt
