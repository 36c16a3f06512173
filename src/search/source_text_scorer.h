#pragma once

#include "model/step_scorer.h"

namespace nmt {

/// A scorer together with the lines that the sources of one batch were cut from: for members of an
/// ensemble with vocabularies of their own. Lives as long as the batch.
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
