#pragma once

#include "text/vocabulary/train_vocabulary.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// A vocabulary of whole words, as a SentencePiece model of type WORD: <unk> 0, <s> 1, </s> 2, then
/// the words in their order. Words are not normalized; a text's own "<unk>" is id 0. Error (usage):
/// a word is empty, longer than a piece may be, contains white space, or occurs twice.
Vocabulary word_vocabulary(const std::vector<std::string>& words);

/// The words of a word_vocabulary(), in their order. Decoding would give a space for a U+2581.
std::vector<std::string> words_of(const Vocabulary& vocabulary);

/// The most frequent words of `lines` lines, ties in byte order; at most size - 3, where size is
/// that of `training`. Words longer than a piece may be are skipped. Errors: as train_vocabulary().
TrainedVocabulary train_word_vocabulary(std::int64_t lines, const LineAt& line,
                                        const VocabularyTraining& training, std::string_view name);

}  // namespace nmt
