#include "text/document_context.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using Ids = std::vector<std::int32_t>;
constexpr std::int32_t end = 2;

TEST(DocumentContext, IsTheSentencesBeforeInTheDocument) {
  const std::vector<std::string> lines{"a", "b", "c", "d", "", "e", " \t", "", "f", "g"};
  EXPECT_EQ(contexts_of(lines, 2),
            (std::vector<ContextSentences>{
                {}, {"a"}, {"a", "b"}, {"b", "c"}, {}, {}, {}, {}, {}, {"f"}}));
  EXPECT_EQ(contexts_of(lines, 1)[3], (ContextSentences{"c"}));
  EXPECT_EQ(contexts_of(lines, 9)[3], (ContextSentences{"a", "b", "c"}));
  EXPECT_TRUE(contexts_of(lines, 0).empty());
  DocumentContext none(0);
  for (const std::string& line : lines) EXPECT_TRUE(none.next(line).empty());
}

TEST(DocumentContext, JoinedIds) {
  const std::vector<MeasuredSentence> context{{{10, 11, 12}, 3}, {{20}, 1}};
  const MeasuredSentence sentence{{30, 31}, 2};
  // 3 + 1 + 1 + 1 + 2 = 8 tokens
  const SourceIds whole = join_context(context, sentence, 8, end);
  EXPECT_EQ(whole.ids, (Ids{10, 11, 12, end, 20, end, 30, 31}));
  EXPECT_EQ(whole.context, 6u);
  EXPECT_EQ(Ids(whole.sentence().begin(), whole.sentence().end()), (Ids{30, 31}));
  EXPECT_EQ(join_context(context, sentence, 100, end).ids, whole.ids);
  // The oldest sentences are dropped first.
  const SourceIds part = join_context(context, sentence, 7, end);
  EXPECT_EQ(part.ids, (Ids{20, end, 30, 31}));
  EXPECT_EQ(part.context, 2u);
  EXPECT_EQ(join_context(context, sentence, 4, end).ids, part.ids);
  for (const int limit : {3, 2, 1}) {
    const SourceIds alone = join_context(context, sentence, limit, end);
    EXPECT_EQ(alone.ids, (Ids{30, 31}));
    EXPECT_EQ(alone.context, 0u);
  }
}

TEST(DocumentContext, NoSentenceIsLeftOutBetweenOthers) {
  const std::vector<MeasuredSentence> context{{{10}, 1}, {{20, 21, 22, 23}, 4}, {{30}, 1}};
  EXPECT_EQ(join_context(context, {{40}, 1}, 7, end).ids, (Ids{30, end, 40}));
}

TEST(DocumentContext, SentencesWithoutIdsHaveNoSeparator) {
  const std::vector<MeasuredSentence> context{{{10}, 1}, {{}, 0}, {{30}, 1}};
  EXPECT_EQ(join_context(context, {{40}, 1}, 5, end).ids, (Ids{10, end, 30, end, 40}));
}

// With max-length-unit words, lengths are not numbers of ids.
TEST(DocumentContext, LengthsHaveTheUnitOfTheLimit) {
  const std::vector<MeasuredSentence> context{{{10, 11, 12, 13}, 1}};
  EXPECT_EQ(join_context(context, {{40, 41, 42}, 1}, 3, end).ids,
            (Ids{10, 11, 12, 13, end, 40, 41, 42}));
  EXPECT_EQ(join_context(context, {{40, 41, 42}, 1}, 2, end).ids, (Ids{40, 41, 42}));
}

}  // namespace
}  // namespace nmt
