#pragma once

#include <string>
#include <vector>

namespace nmt::app {

/// Options of translation alone (attention, pairs of texts, search, noise, blocks), which determine
/// nothing in other tasks, and those of `more`.
std::vector<std::string> idle_outside_translation(std::vector<std::string> more);
/// Options that determine nothing in a language model.
std::vector<std::string> idle_in_language_models();

}  // namespace nmt::app
