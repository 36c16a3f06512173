#pragma once

#include "app/compute/compute.h"
#include "config/specs.h"
#include "tasks/tagging/tagged_corpus.h"
#include "train/stop_request.h"
#include "train/validator.h"

#include <memory>
#include <string>
#include <vector>

namespace nmt::app {

/// Accuracy, or span F1 where the labels are those of spans, and the cross-entropy of a tagger on
/// the development set.
class TaggingValidator : public train::Validator {
 public:
  /// `words`: size of the vocabulary of words. All arguments by reference outlive the validator.
  TaggingValidator(const ModelSpec& spec, int words, std::vector<std::string> labels,
                   const WordForms& forms, TaggedCorpus corpus, std::vector<std::string> references,
                   Compute& compute, const train::StopRequest& stop);
  ~TaggingValidator() override;
  train::ValidationResult validate(const train::CopyWeights& weights,
                                   const Progress& progress) override;
  void dry_run(const train::CopyWeights& weights) override;

 private:
  struct Copy;
  std::unique_ptr<Copy> copy(const train::CopyWeights& weights) const;
  void leave_if_stopped() const;

  const ModelSpec spec_;
  int words_;
  std::vector<std::string> labels_;
  const WordForms& forms_;
  TaggedCorpus corpus_;
  std::vector<std::string> references_;
  Compute& compute_;
  train::StopRequest stop_;
};

}  // namespace nmt::app
