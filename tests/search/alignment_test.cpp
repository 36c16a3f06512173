#include "search/alignment.h"

#include "core/error.h"
#include "small_vocabulary.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

TEST(Alignment, WordsBeginAtTheSpaceMark) {
  const std::vector<std::string> pieces{"▁The", "▁", "qu", "ick", "▁fox", "es", "."};
  const PieceGroups words = words_of_pieces(pieces);
  EXPECT_EQ(words.count, 3);
  EXPECT_EQ(words.of_piece, (std::vector<int>{0, 1, 1, 1, 2, 2, 2}));
}

TEST(Alignment, OddPiecesMakeNoOddWords) {
  const PieceGroups tail = words_of_pieces(std::vector<std::string>{"a", "▁", "▁"});
  EXPECT_EQ(tail.count, 1);
  EXPECT_EQ(tail.of_piece, (std::vector<int>{0, 0, 0}));
  const PieceGroups inner = words_of_pieces(std::vector<std::string>{"▁of▁the", "se", "▁?▁", "x"});
  EXPECT_EQ(inner.count, 4);
  EXPECT_EQ(inner.of_piece, (std::vector<int>{1, 1, 2, 3}));
  const PieceGroups nothing = words_of_pieces(std::vector<std::string>{"▁"});
  EXPECT_EQ(nothing.count, 0);
  EXPECT_EQ(nothing.of_piece, (std::vector<int>{-1}));
}

TEST(Alignment, AttentionIsPooledOverThePiecesOfBothWords) {
  // Source: word 0 = pieces 0 1, word 1 = piece 2, then </s>. Target: word 0 = pieces 0 1, word 1 =
  // piece 2, then </s>.
  const std::vector<float> attention{
      0.10f, 0.15f, 0.30f, 0.45f,   //
      0.30f, 0.25f, 0.35f, 0.10f,   // word 0: 0.80 to word 0, 0.65 to word 1
      0.30f, 0.30f, 0.35f, 0.05f,   // word 1: 0.60 and 0.35
      0.00f, 0.00f, 1.00f, 0.00f};  // </s> is ignored
  const PieceGroups source{{0, 0, 1}, 2}, target{{0, 0, 1}, 2};
  EXPECT_EQ(pharaoh(hard_alignment(attention, 4, source, target)), "0-0 0-1");
  EXPECT_EQ(pharaoh(hard_alignment(attention, 4, each_piece(3), each_piece(3))), "2-0 2-1 2-2");
  EXPECT_EQ(pharaoh(hard_alignment(attention, 4, each_piece(2), each_piece(3))), "0-1 0-2 1-0");
  EXPECT_THROW(hard_alignment(attention, 4, each_piece(5), each_piece(3)), Error);
  EXPECT_EQ(pharaoh(hard_alignment(attention, 4, each_piece(3), each_piece(0))), "");
  // 10^10 pairs of words, most of them behind a crop.
  EXPECT_EQ(pharaoh(hard_alignment(attention, 4, {{0, 0, 1}, 100000}, {{0, 0, 1}, 100000})),
            "0-0 0-1");
  // 10^12 pairs of words, between which no word has a piece.
  const int last = 1'000'000;
  EXPECT_EQ(
      pharaoh(hard_alignment(attention, 4, {{0, 0, last}, last + 1}, {{0, 0, last}, last + 1})),
      "0-0 0-1000000");
  // The second of three target words has no piece.
  EXPECT_EQ(pharaoh(hard_alignment(attention, 4, source, {{0, 0, 2}, 3})), "0-0 0-2");
}

TEST(Alignment, NormalizationMayDropWordsAndSplitOthers) {
  const Vocabulary& vocabulary = small_vocabulary();
  // Raw words: a zero-width space alone, two words around a no-break space, one word.
  const std::string line = "\u200b quick\u00a0fox the";
  const PieceGroups groups = words_of_line(vocabulary, line, vocabulary.encode(line));
  EXPECT_EQ(groups.count, 3);
  std::vector<int> words = groups.of_piece;
  words.erase(std::unique(words.begin(), words.end()), words.end());
  EXPECT_EQ(words, (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace nmt
