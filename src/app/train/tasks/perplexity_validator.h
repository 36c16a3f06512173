#pragma once

#include "app/compute/compute.h"
#include "config/specs.h"
#include "nmt/vocabulary.h"
#include "train/stop_request.h"
#include "train/validator.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Validation of a language model by the code of nmt-score: the development set is read as
/// `validation_parts` parts side by side, each a contiguous text.
class PerplexityValidator : public train::Validator {
 public:
  /// The value of --parts with which nmt-score prints the same perplexity.
  static constexpr int validation_parts = 16;

  /// All references must outlive the validator. `name` of the development set: for messages.
  /// Errors: as check(); (data): no line with text.
  PerplexityValidator(const ModelSpec& model, std::vector<ValidMetric> metrics,
                      const Vocabulary& vocabulary, std::vector<std::string> lines,
                      const std::string& name, Compute& compute, train::StopRequest stop);
  /// Error (usage): no metric, or one other than perplexity and cross-entropy.
  static void check(const std::vector<ValidMetric>& metrics);
  /// Error (failed): the first metric is the perplexity, and it exceeds float64.
  train::ValidationResult validate(const train::CopyWeights& weights,
                                   const Progress& progress) override;
  void dry_run(const train::CopyWeights& weights) override;

 private:
  /// Nats per word; the lines must have text. Throws train::Interrupted.
  double cross_entropy(const train::CopyWeights& weights, std::span<const std::string> lines);

  ModelSpec model_;
  std::vector<ValidMetric> metrics_;
  const Vocabulary& vocabulary_;
  std::vector<std::string> lines_;
  Compute& compute_;
  train::StopRequest stop_;
};

}  // namespace nmt::app
