#include "text/alignment.h"

#include "core/error.h"
#include "text/vocabulary/word_vocabulary.h"

#include <string>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using Points = std::vector<AlignmentPoint>;

std::string refusal(std::string_view line, std::size_t source = 3, std::size_t target = 2) {
  try {
    read_pharaoh(line, source, target, "links", 7);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::data);
    return error.what();
  }
  return "";
}

TEST(Alignment, LinksAreRead) {
  EXPECT_EQ(read_pharaoh("0-0 2-1\t1-0", 3, 2, "f", 1), Points({{0, 0}, {2, 1}, {1, 0}}));
  EXPECT_EQ(read_pharaoh("", 0, 0, "f", 1), Points());
  EXPECT_EQ(read_pharaoh("  \t", 3, 2, "f", 1), Points());
  const Points some{{0, 1}, {2, 0}};
  EXPECT_EQ(read_pharaoh(pharaoh(some), 3, 2, "f", 1), some);
}

TEST(Alignment, ErrorsNameFileLineAndWhatIsAllowed) {
  for (const char* wrong : {"0", "-", "0-", "-0", "a-0", "0-b", "0:0", "0-0-0", "0--1", "+1-0",
                            "0 -0", "1.0-0", "99999999999-0", "0-0 x"}) {
    const std::string error = refusal(wrong);
    EXPECT_TRUE(error.starts_with("links:7: '")) << wrong << ": " << error;
    EXPECT_NE(error.find("expected the positions of two words"), error.npos) << error;
  }
  EXPECT_EQ(refusal("0-0 3-1"),
            "links:7: link 3-1: the source has 3 words; expected a position from 0 to 2");
  EXPECT_EQ(refusal("2-2"),
            "links:7: link 2-2: the target has 2 words; expected a position from 0 to 1");
  EXPECT_EQ(refusal("0-0", 0), "links:7: link 0-0: the source has 0 words; expected no link");
  EXPECT_EQ(refusal("a\nb").find('\n'), std::string::npos);
}

TEST(Alignment, AnUnknownWordAmongWholeWordsIsAWord) {
  const Vocabulary vocabulary = word_vocabulary({"the", "cat"});
  for (const char* line : {"the foo cat", "foo the cat", "the cat foo"}) {
    const PieceGroups groups = words_of_line(vocabulary, line, vocabulary.encode(line));
    EXPECT_EQ(groups.of_piece, (std::vector<int>{0, 1, 2})) << line;
    EXPECT_EQ(groups.count, 3) << line;
  }
}

TEST(Alignment, WordLinksBecomePieceLinks) {
  // Source words of pieces 0; 1 2; 3. A target piece of no word, and words of pieces 1 2; 3.
  const PieceGroups source{{0, 1, 1, 2}, 3}, target{{-1, 0, 0, 1}, 2};
  EXPECT_EQ(piece_links(Points{{1, 0}, {0, 1}, {1, 1}, {1, 0}}, source, target),
            Points({{1, 1}, {2, 1}, {1, 2}, {2, 2}, {0, 3}, {1, 3}, {2, 3}}));
  // Words that a crop or noise removed.
  EXPECT_EQ(piece_links(Points{{2, 1}, {5, 0}, {0, 4}}, source, target), Points({{3, 3}}));
  EXPECT_EQ(piece_links(Points{}, source, target), Points());
}

// Comparing each of so many links with each pair of pieces would take seconds.
TEST(Alignment, ALinkThatIsGivenOftenIsReadOnce) {
  const PieceGroups side = each_piece(300);
  Points links;
  for (int i = 0; i < 200'000; ++i) links.push_back({i % 2, 7});
  for (int i = 0; i < 300; ++i) links.push_back({5, i});
  const Points points = piece_links(links, side, side);
  ASSERT_EQ(points.size(), 302u);
  EXPECT_EQ(points[7], (AlignmentPoint{0, 7}));
  EXPECT_EQ(points[8], (AlignmentPoint{1, 7}));
  EXPECT_EQ(points[9], (AlignmentPoint{5, 7}));
}

}  // namespace
}  // namespace nmt
