#include "text/vocabulary/bpe_dropout.h"

#include "core/error.h"
#include "text/vocabulary/train_vocabulary.h"
#include "text/vocabulary/word_vocabulary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using Ids = std::vector<std::int32_t>;

std::vector<std::string> random_lines(int count, std::uint64_t seed) {
  const std::string syllables[] = {"ba", "le", "mün", "ro", "sta", "ti", "und", "x"};
  Rng rng(seed);
  std::vector<std::string> lines(static_cast<std::size_t>(count));
  for (std::string& line : lines)
    for (std::uint64_t word = 0, words = 1 + rng.below(9); word < words; ++word) {
      if (word > 0) line += ' ';
      for (std::uint64_t i = 0, n = 1 + rng.below(4); i < n; ++i) line += syllables[rng.below(8)];
    }
  return lines;
}

Vocabulary train(const std::vector<std::string>& lines, int size) {
  return Vocabulary::train(lines, {.size = size});
}

std::vector<std::string> pieces(const Vocabulary& vocabulary, const Ids& ids) {
  std::vector<std::string> out;
  for (const std::int32_t id : ids) out.push_back(vocabulary.piece(id));
  return out;
}

TEST(BpeDropout, WithoutDropoutThePiecesAreThoseOfSentencePiece) {
  const std::vector<std::string> lines = random_lines(400, 1);
  const Vocabulary vocabulary = train(lines, 150);
  const BpeDropout dropout(vocabulary, 0);
  Rng rng(2);
  for (const std::string& line : random_lines(400, 3)) {
    const Ids ids = vocabulary.encode(line + " qü z");  // some of it unknown
    EXPECT_EQ(dropout.apply(ids, rng), ids) << line;
  }
  EXPECT_EQ(dropout.apply({}, rng), Ids());
}

TEST(BpeDropout, WithCertainDropoutThePiecesAreCharacters) {
  const std::vector<std::string> lines = random_lines(400, 1);
  const Vocabulary vocabulary = train(lines, 150);
  Rng rng(2);
  const Ids ids = BpeDropout(vocabulary, 1).apply(vocabulary.encode("mün ba"), rng);
  EXPECT_EQ(pieces(vocabulary, ids), (std::vector<std::string>{"▁", "m", "ü", "n", "▁", "b", "a"}));
}

TEST(BpeDropout, TheTextIsKept) {
  const std::vector<std::string> lines = random_lines(400, 1);
  const Vocabulary vocabulary = train(lines, 150);
  const BpeDropout dropout(vocabulary, 0.3);
  Rng rng(5);
  int changed = 0;
  std::size_t usual = 0, varied = 0;
  for (const std::string& line : lines) {
    const Ids ids = vocabulary.encode(line), others = dropout.apply(ids, rng);
    EXPECT_EQ(vocabulary.decode(others), vocabulary.decode(ids));
    usual += ids.size();
    varied += others.size();
    changed += others != ids;
  }
  EXPECT_GT(changed, 300);
  EXPECT_GT(varied, usual);
}

// Algorithm 1 of the paper as a tree of all its draws: P(segmentation) of a word. `merges` are in
// the order in which they were learned.
void enumerate(const std::vector<std::string>& word, const std::vector<std::string>& merges,
               double p, double weight, std::map<std::vector<std::string>, double>& out) {
  struct Candidate {
    std::size_t rank, at;
  };
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i + 1 < word.size(); ++i) {
    const auto found = std::find(merges.begin(), merges.end(), word[i] + word[i + 1]);
    if (found != merges.end())
      candidates.push_back({static_cast<std::size_t>(found - merges.begin()), i});
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
  });
  double all_dropped = weight;  // the best that is kept: every better one was dropped
  for (const Candidate& candidate : candidates) {
    std::vector<std::string> merged = word;
    merged[candidate.at] += merged[candidate.at + 1];
    merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(candidate.at) + 1);
    enumerate(merged, merges, p, all_dropped * (1 - p), out);
    all_dropped *= p;
  }
  out[word] += all_dropped;
}

TEST(BpeDropout, SegmentationsHaveTheProbabilitiesOfThePaper) {
  const Vocabulary vocabulary = train(random_lines(400, 1), 60);
  std::vector<std::string> merges;
  const Ids spaced = vocabulary.encode("stati");
  for (std::int32_t id = 3; id < vocabulary.size(); ++id) merges.push_back(vocabulary.piece(id));
  const double p = 0.25;
  std::map<std::vector<std::string>, double> expected;
  enumerate({"▁", "s", "t", "a", "t", "i"}, merges, p, 1, expected);
  ASSERT_GT(expected.size(), 8u);
  const BpeDropout dropout(vocabulary, p);
  constexpr int draws = 40000;
  std::map<std::vector<std::string>, int> counts;
  Rng rng(9);
  for (int i = 0; i < draws; ++i) ++counts[pieces(vocabulary, dropout.apply(spaced, rng))];
  for (const auto& [segmentation, probability] : expected) {
    const double share = static_cast<double>(counts[segmentation]) / draws;
    EXPECT_NEAR(share, probability, 5 * std::sqrt(probability / draws) + 1e-4)
        << ::testing::PrintToString(segmentation);
    counts.erase(segmentation);
  }
  EXPECT_TRUE(counts.empty());
}

TEST(BpeDropout, WordsWithoutEndTakeLinearTime) {
  const Vocabulary vocabulary = train(random_lines(400, 1), 150);
  std::string endless;
  for (int i = 0; i < 20000; ++i) endless += "balemünrosta";
  const Ids ids = vocabulary.encode(endless);
  Rng rng(1);
  const Ids others = BpeDropout(vocabulary, 0.1).apply(ids, rng);
  EXPECT_EQ(vocabulary.decode(others), endless);
}

TEST(BpeDropout, OtherVocabulariesAreRefused) {
  const std::vector<std::string> lines = random_lines(50, 1);
  const TrainedVocabulary words = train_word_vocabulary(
      50, [&](std::int64_t i) { return std::string_view(lines[static_cast<std::size_t>(i)]); },
      {.size = 40}, "test");
  try {
    BpeDropout(words.vocabulary, 0.1);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::usage);
    EXPECT_NE(std::string(error.what()).find("byte-pair encoding"), std::string::npos);
  }
}

}  // namespace
}  // namespace nmt
