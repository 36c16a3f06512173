#pragma once

#include "eval/tokenize.h"
#include "nmt/metrics.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

template <>
struct EnumNames<BleuSmoothing> {
  static constexpr std::array<std::string_view, 4> names{"exp", "floor", "add-k", "none"};
};

/// The options of multi-bleu.perl (Moses), for tokenized text: words are split at white space,
/// without smoothing.
BleuOptions multi_bleu_options(bool lowercase);
/// Counts of one hypothesis against its references (at least one).
BleuCounts bleu_counts(const std::string& hypothesis, const std::vector<std::string>& references,
                       const BleuOptions& options);
/// BLEU (Papineni et al. 2002) of summed counts, as sacreBLEU 2 computes it (Post 2018).
BleuScore bleu_from_counts(const BleuCounts& counts, const BleuOptions& options);
/// Corpus BLEU with one reference per hypothesis. Error (data): the numbers of lines differ.
BleuScore corpus_bleu(const std::vector<std::string>& hypotheses,
                      const std::vector<std::string>& references, const BleuOptions& options = {});
/// For example "65.0/38.9/25.6/17.2 (BP = 1.000 ratio = 1.012 hyp_len = 12 ref_len = 12)"
std::string verbose(const BleuScore& score);
/// For example "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:nmt-0.1.0". `trials`, for
/// example "bs:1000|seed:12345|", follows nrefs.
std::string bleu_signature(const BleuOptions& options, int references,
                           const std::string& trials = "");

}  // namespace nmt
