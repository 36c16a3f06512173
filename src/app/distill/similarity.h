#pragma once

#include "app/distill/distill_enums.h"

#include <cstddef>
#include <string>
#include <vector>

namespace nmt::app {

/// Sentence BLEU (effective order, exponential smoothing, tokenizer 13a: sacreBLEU's
/// sentence_bleu), or chrF for Selection::chrf, from 0 to 100.
double similarity(const std::string& hypothesis, const std::string& reference, Selection by);

/// The number of the hypothesis with the highest similarity(); the first one for ties.
/// `hypotheses`: at least one. Selection::score: 0.
std::size_t closest(const std::vector<std::string>& hypotheses, const std::string& reference,
                    Selection by);

/// BLEU of a text, as nmt-bleu. Error (data): the numbers of lines differ.
double text_bleu(const std::vector<std::string>& outputs,
                 const std::vector<std::string>& references);

}  // namespace nmt::app
