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

/// What users say of the models that translate together.
struct EnsembleRequest {
  std::vector<std::string> models;  ///< directories
  std::vector<double> weights;
  std::string combination = "log-probabilities";
};
/// The precision to decode in: `precision`, or without one that of the models' directories, float32
/// where they differ. Errors (usage): as ModelDirectory::open.
Precision decoding_precision(std::optional<Precision> precision,
                             const std::vector<std::string>& models);
/// --model, --weights, --ensemble.
std::vector<config::Option> fields(EnsembleRequest& request);

/// One model, or several as one.
class LoadedEnsemble {
 public:
  /// `pieces_in`: sources come in pieces of the first model's vocabulary. Errors (usage): no model,
  /// weights that do not fit, other target vocabularies or, with pieces_in, other source
  /// vocabularies, by name; and as LoadedModel::load. Without a `precision`, on the CPU, each model
  /// keeps that of its directory; else all have the context's dtype of weights.
  LoadedEnsemble(const EnsembleRequest& request, const Context& context,
                 std::optional<Precision> precision, int max_length, bool pieces_in);
  Scorer& scorer() {
    return ensemble_ ? static_cast<Scorer&>(*ensemble_) : models_.front()->scorer();
  }
  const Vocabulary& source_vocabulary() const { return models_.front()->source_vocabulary(); }
  const Vocabulary& target_vocabulary() const { return models_.front()->target_vocabulary(); }

 private:
  std::vector<std::unique_ptr<LoadedModel>> models_;
  std::optional<EnsembleScorer> ensemble_;
};

/// What translating and scoring begin with: where to compute, told in the log, and the models
/// there.
struct Inference {
  /// Errors: as Compute and LoadedEnsemble.
  Inference(const std::string& program, const EnsembleRequest& request, const SearchSpec& spec,
            bool pieces_in);

  Compute compute;
  std::unique_ptr<Arena> arena;
  LoadedEnsemble models;
};

}  // namespace nmt::app
