#pragma once

#include "app/compute/compute.h"
#include "config/specs.h"
#include "core/files/file.h"
#include "data/batch.h"
#include "nmt/vocabulary.h"
#include "text/document_context.h"
#include "train/stop_request.h"
#include "train/validator.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nmt::app {

/// The development set: lines of valid UTF-8 without line ends, read as nmt-translate and nmt-bleu
/// read them.
struct DevelopmentSet {
  std::vector<std::string> sources, references;
  std::vector<ContextSentences> contexts;  ///< of the sources; none if the model has no context
  std::string source_file = {}, reference_file = {};  ///< for messages
  /// Numbers of the sources in their file, from 1; empty: all its lines.
  std::vector<std::int64_t> lines = {};
};

/// Validation by the code of nmt-translate and nmt-bleu on a frozen copy of the weights, so that
/// BLEU and chrF equal the output of these programs. Cross-entropy is the mean per target token,
/// </s> included, without label smoothing; perplexity is its exponential. Both use the pairs with
/// text on both sides. Where the model gives no finite scores, BLEU and chrF are NaN, so that the
/// training can return to an older checkpoint.
class TranslationValidator : public train::Validator {
 public:
  /// All references must outlive the validator. `max_sentences`: translate only that many; 0: all.
  /// Errors (usage): no metric; (data): no pair with text on both sides.
  TranslationValidator(const ModelSpec& model, const std::vector<ValidMetric>& metrics,
                       std::int64_t max_sentences, const SearchSpec& search,
                       const Vocabulary& source, const Vocabulary& target, DevelopmentSet set,
                       Compute& compute);
  ~TranslationValidator() override;

  /// Error (usage): no metric.
  static void check(const std::vector<ValidMetric>& metrics);

  train::ValidationResult validate(const train::CopyWeights& weights,
                                   const Progress& progress) override;
  void dry_run(const train::CopyWeights& weights) override;
  /// Validations end without a result when `stop` requests it; by default, on signals.
  void stop_on(train::StopRequest stop) { stop_ = std::move(stop); }
  const DevelopmentSet& set() const { return set_; }
  /// The sentence that the dry run translates: the one that is longest with its context.
  std::size_t longest_sentence() const;
  /// Writes the translations of each validation to `path` in the format of development_json(),
  /// replacing the previous ones; "": not written. If the file cannot be written, a warning is
  /// logged once and training continues.
  void keep_translations(std::string path);

 private:
  struct Copy;
  std::unique_ptr<Copy> copy(const train::CopyWeights& weights) const;
  std::vector<std::string> translate(Copy& copy, std::span<const std::string> lines,
                                     std::span<const ContextSentences> contexts) const;
  double cross_entropy(Copy& copy, std::span<const Batch> batches) const;
  void warn_of_crops();
  void warn_of_cropped_translations() const;
  void leave_if_stopped() const;
  bool wants(ValidMetric a, ValidMetric b) const;
  void keep(const std::vector<std::string>& outputs, std::int64_t updates);

  ModelSpec model_;
  std::vector<ValidMetric> metrics_;
  SearchSpec search_;
  const Vocabulary &source_, &target_;
  DevelopmentSet set_;
  DevelopmentSet decoded_;          // the first max_sentences
  std::vector<Batch> batches_;      // for the cross-entropy
  std::int64_t cropped_sides_ = 0;  // of pairs in batches_
  Compute& compute_;
  train::StopRequest stop_;
  std::string path_;                       // of keep_translations()
  std::optional<FileIdentity> directory_;  // of path_, at keep_translations()
  bool crops_warned_ = false;              // by warn_of_crops()
};

/// {"updates": N, "sources": [...], "references": [...], "outputs": [...]}: lists of the same
/// length, as `contexts` of the set, which are added if there are any.
std::string development_json(std::int64_t updates, const DevelopmentSet& set,
                             const std::vector<std::string>& outputs);

}  // namespace nmt::app
