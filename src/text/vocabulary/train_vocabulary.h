#pragma once

#include "nmt/vocabulary.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace nmt {

/// The longest line that SentencePiece trains on: it stores the place of a character in 16 bits,
/// and normalization writes up to two characters for a byte.
constexpr std::size_t max_vocabulary_line_bytes = (1 << 14) - 1;

/// The result of train_vocabulary().
struct TrainedVocabulary {
  Vocabulary vocabulary;
  std::int64_t lines_used = 0;
  std::int64_t lines_too_long = 0;  ///< skipped
  double character_coverage = 1.0;  ///< fraction of the text's characters that have a piece
};

/// Returns line i, 0 <= i < lines, as valid UTF-8 without its LF. The text is valid until the next
/// call.
using LineAt = std::function<std::string_view(std::int64_t)>;

/// Trains a BPE vocabulary (Sennrich et al. 2016, as implemented by SentencePiece) on `lines`
/// lines, in memory. If the text supports only fewer pieces, or its characters need more, the
/// nearest possible size is used and logged. Character coverage is 1 for a small alphabet and
/// 0.9995 for a large one. Deterministic. Errors: (usage) a size below 4, longer lines
/// than max_vocabulary_line_bytes; (data) no line has text. `name` is for messages.
TrainedVocabulary train_vocabulary(std::int64_t lines, const LineAt& line,
                                   const VocabularyTraining& training, std::string_view name);

}  // namespace nmt
