#pragma once

#include "model/step_scorer.h"

namespace nmt {

/// A scorer together with the source lines of one batch, for ensemble members with their own source
/// vocabularies. Used for a single batch.
class SourceTextScorer : public StepScorer {
 public:
  SourceTextScorer(StepScorer& scorer, std::span<const std::string> lines)
      : scorer_(scorer), lines_(lines) {}
  using StepScorer::begin;
  int vocabulary() const override { return scorer_.vocabulary(); }
  std::unique_ptr<Decoding> begin(std::span<const std::vector<std::int32_t>> sources,
                                  bool want_attention) override {
    return scorer_.begin(sources, lines_, want_attention);
  }

 private:
  StepScorer& scorer_;
  std::span<const std::string> lines_;
};

}  // namespace nmt
