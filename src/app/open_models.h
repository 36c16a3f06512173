#pragma once

#include "app/ensemble.h"
#include "app/workers.h"
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
             const ComputeSpec& where, bool pieces_in)
      : inference(title, ensemble, search, where, pieces_in),
        workers(inference.compute,
                [this](const Context& context) { return inference.models.share(context); }) {}
  OpenModels(const OpenModels&) = delete;
  OpenModels& operator=(const OpenModels&) = delete;

  Inference inference;
  Workers workers;
  /// That of the model directory, once a translator has looked for it; null: none. Later
  /// translators with these models have the same, whatever becomes of the directory.
  std::shared_ptr<const Shortlist> shortlist;
  bool has_looked_for_shortlist = false;
  std::mutex shortlist_mutex;  ///< of these two: translators may be made by several threads
};

}  // namespace nmt::app
