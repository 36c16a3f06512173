#pragma once

#include "app/bleu/bleu_options.h"

#include <string>
#include <vector>

namespace nmt::app {

/// The output of a translation system, one line per sentence.
struct System {
  std::string name;
  std::vector<std::string> lines;
};

/// Scores the systems and returns the report in sacreBLEU's format. `references[k]` is reference
/// stream k; it has as many lines as each system.
std::string report(const BleuSpec& spec, const std::vector<System>& systems,
                   const std::vector<std::vector<std::string>>& references);

}  // namespace nmt::app
