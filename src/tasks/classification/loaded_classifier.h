#pragma once

#include "model/directory/model_directory.h"
#include "tasks/classification/classifier.h"
#include "tasks/classification/labeled_corpus.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// A model directory ready to classify: spec, vocabulary, names of the labels, weights.
class LoadedClassifier {
 public:
  /// Loads the published checkpoint (best, else latest). The context's pool and arena must outlive
  /// it. Errors: (usage) no model there, or one of another task; (data) damaged files.
  LoadedClassifier(const std::string& directory, const Context& context);
  LoadedClassifier(const LoadedClassifier&) = delete;

  const std::vector<std::string>& names() const { return names_; }
  /// What the classifier was trained on; none: a model of an earlier version.
  std::optional<LabeledUnit> labels() const { return directory_.spec().classification.labels; }
  /// The names of the labels of examples of valid UTF-8, whose labels are not read. Texts of more
  /// than max_classified_tokens are cropped; a warning names the line of the first. The label of a
  /// text without tokens, or of two, is "", unless `with_blank` has it classified as <unk>.
  std::vector<std::string> classify(const std::vector<LabeledText>& examples,
                                    bool with_blank = false);
  /// Whether a line has anything that the classifier reads: more than white space.
  bool has_text(std::string_view line) const;
  /// Number of texts, or pairs, that classify() has cropped.
  std::int64_t cropped() const { return cropped_; }

 private:
  ModelDirectory directory_;
  VocabularyPair vocabularies_;
  std::vector<std::string> names_;
  Classifier classifier_;
  std::int64_t cropped_ = 0;
};

}  // namespace nmt
