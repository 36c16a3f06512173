#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nmt {

/// Limits of a SentencePiece model. SentencePiece recurses once per byte of a piece when it loads a
/// unigram model (sentencepiece issue 1263), so a long piece overflows the stack; it encodes the
/// self-test samples when it loads a model, in quadratic time in the length of a sample.
inline constexpr std::size_t max_vocabulary_bytes = 64 << 20;
inline constexpr std::size_t max_pieces = 1'000'000;
inline constexpr std::size_t max_piece_bytes = 4096;
/// Of a label or tag, which is a piece behind U+2581.
inline constexpr std::size_t max_label_bytes = max_piece_bytes - 3;
inline constexpr std::size_t max_self_test_bytes = 64 << 10;

/// What is wrong with a serialized SentencePiece model that SentencePiece itself does not check
/// before it reads it: the limits above, malformed messages, and unsound normalization tables. ""
/// where nothing is. Takes linear time, allocates nothing but the tries of the tables.
std::string sentencepiece_defect(std::string_view model);

}  // namespace nmt
