#pragma once

#include "model/decoding/model_scorer.h"
#include "model/directory/model_directory.h"
#include "model/model.h"

#include <memory>
#include <string>

namespace nmt {

/// A model directory ready to translate and to score: spec, vocabularies, frozen weights.
class LoadedModel {
 public:
  /// Loads the published checkpoint (best, else latest) for decoding with weights of the context's
  /// dtype, converted if the directory has another one. Weights are loaded from the mapped file
  /// tensor by tensor, so the peak memory is little more than one copy. The context's pool and
  /// arena must outlive it. Errors: (usage) no model there; (data) damaged files, or tensors that
  /// are missing, unexpected or of another shape, by name.
  static std::unique_ptr<LoadedModel> load(const std::string& directory, const Context& context);

  Model& model() { return *model_; }
  StepScorer& scorer() { return *scorer_; }
  const Vocabulary& source_vocabulary() const { return *vocabularies_.source; }
  const Vocabulary& target_vocabulary() const { return *vocabularies_.target; }
  /// Number of updates of the loaded checkpoint, and its directory.
  std::int64_t updates() const { return updates_; }
  const std::string& folder() const { return folder_; }

 private:
  LoadedModel() = default;
  VocabularyPair vocabularies_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ModelScorer> scorer_;
  std::int64_t updates_ = 0;
  std::string folder_;
};

/// Checks that a model file with weights of type `weights` (stored_weights.h) matches these
/// parameters. Errors (data): missing or unexpected tensors, or other shapes or dtypes; all missing
/// and all unexpected names in one line.
void check_weights(const safetensors::File& file, Dtype weights, const ParameterSet& parameters);
/// Loads the parameters from such a file, releasing its pages on the way, and freezes the model.
/// Errors: as check_weights().
void load_frozen(const safetensors::File& file, Dtype weights, Model& model);

}  // namespace nmt
