#pragma once

#include "model/directory/model_directory.h"
#include "search/beam/shortlist.h"

#include <optional>

namespace nmt::app {

/// The shortlist that a model directory stores, and its size in the log; nothing if there is none.
/// Errors: as Shortlist::from_bytes.
std::optional<Shortlist> stored_shortlist(const ModelDirectory& directory, const Vocabulary& source,
                                          const Vocabulary& target);

}  // namespace nmt::app
