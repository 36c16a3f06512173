#pragma once

#include "app/compute/compute.h"
#include "config/option.h"
#include "config/precision.h"
#include "config/specs.h"
#include "model/directory/loaded_model.h"
#include "search/beam/ensemble_scorer.h"
#include "tasks/language_model/language_model_scorer.h"
#include "tasks/language_model/loaded_language_model.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nmt::app {

/// Models of an ensemble, or a single model.
struct EnsembleSpec {
  std::vector<std::string> models;  ///< model directories; at least one
  std::vector<double> weights;      ///< one per model; empty: equal
  Combination combination = Combination::log_probabilities;
  std::string language_model;          ///< directory of a model for shallow fusion; empty: none
  double language_model_weight = 0.2;  ///< of its log p of the target
};
/// --model, --weights, --ensemble.
std::vector<config::Option> fields(EnsembleSpec& spec);
/// --lm, --lm-weight.
std::vector<config::Option> fusion_fields(EnsembleSpec& spec);
/// Errors (usage): no model; numbers of weights and models differ; a weight is not above 0; a
/// language model in a mean of probabilities.
void check(const EnsembleSpec& spec);

/// Error (usage): the target vocabularies of two models of an ensemble differ. `option` begins the
/// message.
void require_one_target(const char* option, const std::string& first, const Vocabulary& of_first,
                        const std::string& model, const Vocabulary& of_model);

/// The precision for decoding: `precision` if set, else that of the model directories, or float32
/// if they differ. Errors (usage): as ModelDirectory::open.
Precision decoding_precision(std::optional<Precision> precision,
                             const std::vector<std::string>& models);

/// A loaded model, or an ensemble of several.
class LoadedEnsemble {
 public:
  /// `pieces_in`: sources are split into pieces of the first model's vocabulary. If `precision` is
  /// unset and the device is the CPU, each model keeps the precision of its directory; otherwise
  /// all have the context's weight dtype. Errors (usage): no model, a wrong number of weights,
  /// different target vocabularies, also of the language model, or, with pieces_in or context
  /// sentences, different source vocabularies; different numbers of context sentences; as
  /// LoadedModel::load.
  LoadedEnsemble(const EnsembleSpec& spec, const Context& context,
                 std::optional<Precision> precision, int max_length, bool pieces_in);
  StepScorer& scorer() {
    return ensemble_ ? static_cast<StepScorer&>(*ensemble_) : models_.front()->scorer();
  }
  /// A scorer with the same weights, for another thread (Model(frozen, context)). The models must
  /// outlive it.
  std::shared_ptr<StepScorer> scorer_on(const Context& context) const;
  /// ModelSpec::context_sentences of the models.
  int context_sentences() const { return models_.front()->model().spec().context_sentences; }
  const Vocabulary& source_vocabulary() const { return models_.front()->source_vocabulary(); }
  const Vocabulary& target_vocabulary() const { return models_.front()->target_vocabulary(); }

 private:
  EnsembleScorer::Member member(std::size_t model, StepScorer& scorer) const;
  EnsembleScorer::Member added(StepScorer& scorer) const;
  std::vector<std::unique_ptr<LoadedModel>> models_;
  std::unique_ptr<LoadedLanguageModel> language_model_;  // null: none
  std::optional<LanguageModelScorer> language_scorer_;
  double language_model_weight_;
  std::vector<double> weights_;
  Combination combination_;
  int max_length_;
  EnsembleScorer::CropWarning crop_warning_ = std::make_shared<std::atomic<bool>>(false);
  std::optional<EnsembleScorer> ensemble_;
};

/// The device and the models for translating and scoring.
struct Inference {
  /// Logs the device, in a line that begins with `title`. Errors: as Compute and LoadedEnsemble.
  Inference(const std::string& title, const EnsembleSpec& ensemble, const SearchSpec& search,
            const ComputeSpec& compute_spec, bool pieces_in);

  Compute compute;
  std::unique_ptr<Arena> arena;
  LoadedEnsemble models;
};

}  // namespace nmt::app
