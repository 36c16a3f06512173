#pragma once

#include "app/compute.h"
#include "config/option.h"
#include "config/precision.h"
#include "config/specs.h"
#include "model/directory/loaded_model.h"
#include "search/beam/ensemble.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nmt::app {

/// The models that translate or score together.
struct EnsembleSpec {
  std::vector<std::string> models;  ///< model directories; at least one
  std::vector<double> weights;      ///< one per model; empty: all the same
  Combination combination = Combination::log_probabilities;
};
/// --model, --weights, --ensemble.
std::vector<config::Option> fields(EnsembleSpec& spec);
/// Error (usage): no model; another number of weights than of models.
void check(const EnsembleSpec& spec);

/// The precision to decode in: `precision`, or without one that of the models' directories, float32
/// where they differ. Errors (usage): as ModelDirectory::open.
Precision decoding_precision(std::optional<Precision> precision,
                             const std::vector<std::string>& models);

/// One model, or several as one.
class LoadedEnsemble {
 public:
  /// `pieces_in`: sources come in pieces of the first model's vocabulary. Errors (usage): no model,
  /// weights that do not fit, other target vocabularies or, with pieces_in, other source
  /// vocabularies, by name; and as LoadedModel::load. Without a `precision`, on the CPU, each model
  /// keeps that of its directory; else all have the context's dtype of weights.
  LoadedEnsemble(const EnsembleSpec& spec, const Context& context,
                 std::optional<Precision> precision, int max_length, bool pieces_in);
  StepScorer& scorer() {
    return ensemble_ ? static_cast<StepScorer&>(*ensemble_) : models_.front()->scorer();
  }
  const Vocabulary& source_vocabulary() const { return models_.front()->source_vocabulary(); }
  const Vocabulary& target_vocabulary() const { return models_.front()->target_vocabulary(); }

 private:
  std::vector<std::unique_ptr<LoadedModel>> models_;
  std::optional<EnsembleScorer> ensemble_;
};

/// What translating and scoring begin with: the device and the models on it.
struct Inference {
  /// Logs the device in a line that begins with `title`. Errors: as Compute and LoadedEnsemble.
  Inference(const std::string& title, const EnsembleSpec& ensemble, const SearchSpec& search,
            const ComputeSpec& where, bool pieces_in);

  Compute compute;
  std::unique_ptr<Arena> arena;
  LoadedEnsemble models;
};

}  // namespace nmt::app
