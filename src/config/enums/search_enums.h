#pragma once

#include "config/enum_names.h"

namespace nmt {

/// Units that alignments link.
enum class AlignmentKind { none, word, subword };
template <>
struct EnumNames<AlignmentKind> {
  static constexpr auto names = std::to_array<std::string_view>({"", "word", "subword"});
};

/// Sort key of the sentences of a window before batching.
enum class WindowOrder { source_length, none };
template <>
struct EnumNames<WindowOrder> {
  static constexpr auto names = std::to_array<std::string_view>({"src", "none"});
};

/// How an ensemble combines the distributions p_m of its members, with weights w_m that sum to 1.
enum class Combination {
  log_probabilities,  ///< sum of w_m log p_m, as in Marian; not normalized
  probabilities       ///< log of the sum of w_m p_m
};
template <>
struct EnumNames<Combination> {
  static constexpr auto names =
      std::to_array<std::string_view>({"log-probabilities", "probabilities"});
};

/// The statistics of Marian's --summary.
enum class Summary { none, cross_entropy, ce_mean_words, ce_sum, perplexity };
template <>
struct EnumNames<Summary> {
  static constexpr auto names = std::to_array<std::string_view>(
      {"", "cross-entropy", "ce-mean-words", "ce-sum", "perplexity"});
};

}  // namespace nmt
