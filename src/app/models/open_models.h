#pragma once

#include "app/compute/workers.h"
#include "app/models/loaded_ensemble.h"
#include "search/beam/shortlist.h"

#include <memory>
#include <mutex>
#include <string>

namespace nmt::app {

/// Loaded models with their device and workers. Several translators and scorers can use them, one
/// call at a time.
struct OpenModels {
  /// Errors: as Inference.
  OpenModels(const std::string& title, const EnsembleSpec& ensemble, const SearchSpec& search,
             const ComputeSpec& compute_spec, bool pieces_in)
      : inference(title, ensemble, search, compute_spec, pieces_in),
        workers(inference.compute,
                [this](const Context& context) { return inference.models.scorer_on(context); }) {}
  OpenModels(const OpenModels&) = delete;
  OpenModels& operator=(const OpenModels&) = delete;

  Inference inference;
  Workers workers;
  /// That of the model directory, which the first translator loads; null: none. Later translators
  /// with these models use the same, whatever becomes of the directory.
  std::shared_ptr<const Shortlist> shortlist;
  std::once_flag shortlist_loaded;
};

}  // namespace nmt::app
