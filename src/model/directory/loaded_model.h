#pragma once

#include "model/directory/model_directory.h"
#include "model/model.h"
#include "model/model_scorer.h"

#include <memory>
#include <string>

namespace nmt {

/// A model directory ready to translate and to score: spec, vocabularies, frozen weights.
class LoadedModel {
 public:
  /// Loads the published checkpoint (best, else latest) for decoding with weights of the context's
  /// dtype, rounded or widened where the directory has them in another. At no time does it hold
  /// much more than the weights once: they come from the mapped file tensor by tensor. The
  /// context's pool and arena outlive it. Errors (usage): no model there; (data): damaged files;
  /// tensors missing, left over or of another shape, by name.
  static std::unique_ptr<LoadedModel> load(const std::string& directory, const Context& context);

  Model& model() { return *model_; }
  StepScorer& scorer() { return *scorer_; }
  const Vocabulary& source_vocabulary() const { return *vocabularies_.source; }
  const Vocabulary& target_vocabulary() const { return *vocabularies_.target; }
  /// Updates of the checkpoint that was loaded, and its folder.
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

/// Whether a model file of weights in `weights` (stored_weights.h) fits these parameters. Errors
/// (data): a parameter that the file lacks or holds in another shape or dtype, or tensors that the
/// model has no place for; all missing and all left-over names in one line.
void check_weights(const safetensors::File& file, Dtype weights, const ParameterSet& parameters);
/// Fills the model's parameters from such a file, giving its pages back as it goes, and freezes the
/// model. Errors: as check_weights().
void load_frozen(const safetensors::File& file, Dtype weights, Model& model);

}  // namespace nmt
