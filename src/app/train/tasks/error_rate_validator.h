#pragma once

#include "app/compute/compute.h"
#include "config/specs.h"
#include "tasks/classification/labeled_corpus.h"
#include "train/stop_request.h"
#include "train/validator.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Error rate and cross-entropy of a classifier on the development set.
class ErrorRateValidator : public train::Validator {
 public:
  /// `vocabulary`: size of the vocabulary of the texts. `references`: names of the right labels.
  ErrorRateValidator(const ModelSpec& spec, int vocabulary, std::vector<std::string> names,
                     LabeledCorpus corpus, std::vector<std::string> references, Compute& compute,
                     const train::StopRequest& stop);
  train::ValidationResult validate(const train::CopyWeights& weights,
                                   const Progress& progress) override;
  void dry_run(const train::CopyWeights& weights) override;

 private:
  ClassificationResult run(const train::CopyWeights& weights, const LabeledCorpus& corpus) const;

  const ModelSpec spec_;
  int vocabulary_;
  std::vector<std::string> names_;
  LabeledCorpus corpus_;
  std::vector<std::string> references_;
  Compute& compute_;
  train::StopRequest stop_;
};

}  // namespace nmt::app
