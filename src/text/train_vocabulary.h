#pragma once

#include "nmt/vocabulary.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace nmt {

struct VocabularyTraining {
  int size = 8000;                     ///< pieces, <unk>, <s> and </s> among them
  std::int64_t max_lines = 2'000'000;  ///< lines to learn from at most, taken at even distances
  std::size_t max_line_bytes = 4096;   ///< longer lines are passed over
};

/// What a training took and gave.
struct TrainedVocabulary {
  Vocabulary vocabulary;
  std::int64_t lines_used = 0;
  std::int64_t lines_too_long = 0;  ///< passed over
  double character_coverage = 1.0;  ///< share of the characters that got a piece of their own
};

/// Line number i, 0 <= i < lines, as valid UTF-8 without its end; the text stays valid until the
/// next call.
using LineAt = std::function<std::string_view(std::int64_t)>;

/// Learns byte-pair encoding (Sennrich et al. 2016, as SentencePiece does it) from `lines` lines,
/// in memory. Where the text has too few different pieces for the size, or more characters than it,
/// the size is the nearest possible and a log line says so. A small alphabet is covered whole, a
/// large one to 99.95 % of the text's characters. The same lines give the same bytes. Errors: usage
/// for a size below 4; data when no line has text. `name` is for messages.
TrainedVocabulary train_vocabulary(std::int64_t lines, const LineAt& line,
                                   const VocabularyTraining& training, std::string_view name);

}  // namespace nmt
