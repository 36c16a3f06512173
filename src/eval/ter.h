#pragma once

#include "eval/metric.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nmt {

/// Fewest edits that turn the words of a hypothesis into those of a reference, by the greedy search
/// of Tercom (Snover et al. 2006) with the limits of sacreBLEU 2: insertions, deletions and
/// substitutions of a word, and shifts of a phrase of at most 10 words by at most 50 positions.
std::int64_t translation_edits(std::span<const std::string> hypothesis,
                               std::span<const std::string> reference);

/// TER: the edits against the nearest reference, in percent of the references' mean length.
std::unique_ptr<Metric> ter_metric(const TerOptions& options);
/// For example "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:nmt-0.2.0".
std::string ter_signature(const TerOptions& options, int references,
                          const std::string& trials = "");

}  // namespace nmt
