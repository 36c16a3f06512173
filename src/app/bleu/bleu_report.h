#pragma once

#include "app/bleu/bleu_options.h"

#include <string>
#include <vector>

namespace nmt::app {

/// What a translation system wrote, one line a sentence.
struct System {
  std::string name;
  std::vector<std::string> lines;
};

/// Scores the systems and writes what the spec asks for, in sacreBLEU's form. `references[k]` is
/// reference stream k, as long as every system.
std::string report(const BleuSpec& spec, const std::vector<System>& systems,
                   const std::vector<std::vector<std::string>>& references);

}  // namespace nmt::app
