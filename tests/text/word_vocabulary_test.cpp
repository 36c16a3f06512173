#include "text/vocabulary/word_vocabulary.h"

#include "core/error.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using Ids = std::vector<std::int32_t>;
using Lines = std::vector<std::string>;

TEST(WordVocabulary, GivesEveryWordOneId) {
  const Vocabulary words = word_vocabulary({"the", "N", "caf\xc3\xa9", "-", "$"});
  EXPECT_EQ(words.size(), 8);
  EXPECT_EQ(words.encode("the caf\xc3\xa9 N"), (Ids{3, 5, 4}));
  // Neighboring unknown words are as many <unk>, and the text's own <unk> is one.
  EXPECT_EQ(words.encode(" <unk> <unk>  the\tfoo bar $ "), (Ids{0, 0, 3, 0, 0, 7}));
  EXPECT_EQ(words.encode("  "), Ids{});
  EXPECT_EQ(words.encode("The theN"), (Ids{0, 0}));
  EXPECT_EQ(words.decode(Ids{3, 4, 7}), "the N $");
  const Vocabulary again = Vocabulary::from_bytes(words.bytes(), "again");
  EXPECT_EQ(again.encode("foo bar the"), (Ids{0, 0, 3}));
}

TEST(WordVocabulary, RefusesWhatIsNoWord) {
  for (const Lines& wrong :
       {Lines{"a", "a"}, Lines{""}, Lines{"a b"}, Lines{std::string(5000, 'x')}})
    EXPECT_THROW(word_vocabulary(wrong), Error);
}

TEST(WordVocabulary, KeepsTheMostFrequentWords) {
  const Lines lines{"b a c <unk>", "", "a b <unk> <unk>", "a d"};
  const auto line = [&](std::int64_t i) -> std::string_view {
    return lines[static_cast<std::size_t>(i)];
  };
  VocabularyTraining training;
  training.size = 6;  // a b, and of c and d the first
  const TrainedVocabulary trained = train_word_vocabulary(4, line, training, "text");
  EXPECT_EQ(trained.lines_used, 3);
  EXPECT_EQ(trained.vocabulary.size(), 6);
  EXPECT_EQ(trained.vocabulary.encode("a b c d <unk>"), (Ids{3, 4, 5, 0, 0}));
  training.size = 100;
  EXPECT_EQ(train_word_vocabulary(4, line, training, "text").vocabulary.size(), 7);
  training.size = 3;
  EXPECT_THROW(train_word_vocabulary(4, line, training, "text"), Error);
  training.size = 10;
  EXPECT_THROW(train_word_vocabulary(0, line, training, "text"), Error);
}

}  // namespace
}  // namespace nmt
