// Links between words on their way into batches.

#include "core/error.h"
#include "data/alignment/alignments.h"
#include "data/alignment/batch_links.h"
#include "data/round_shape.h"
#include "data/training_data.h"
#include "tests/data/corpus_vocabulary.h"
#include "tests/data/temporary_files.h"

#include <barrier>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nmt {
namespace {

using Links = std::set<std::pair<int, int>>;  // source and target piece

constexpr int pairs = 120;
constexpr const char* names[] = {"river", "Haus", "blue", "Tür", "seven", "Milch"};

// Words of pair i, the mark at the end included. Word j of the source is linked to word words - 1 -
// j of the target; in every fifth pair, no words are linked.
int words_of(std::int64_t i) {
  return static_cast<int>(3 + i % 7);
}

class GuidedAlignment : public testing::Test {
 protected:
  void SetUp() override {
    std::string source, target, links;
    for (int i = 0; i < pairs; ++i) {
      for (int j = 0; j + 1 < words_of(i); ++j) {
        source += fmt::format("{}{} ", names[(i + j) % 6], names[j % 5]);
        target += fmt::format("{}{} ", names[(i + 2 * j) % 6], names[(j + 3) % 6]);
        if (i % 5 != 0) links += fmt::format("{}-{} ", j, words_of(i) - 1 - j);
      }
      if (i % 5 != 0) links += fmt::format("{}-0", words_of(i) - 1);
      source += ".\n", target += "!\n", links += "\n";
    }
    corpus_.emplace(files_.write("s", source), files_.write("t", target));
    alignments_.emplace(files_.write("links", links), *corpus_);
    vocabulary_.emplace(corpus_vocabulary(*corpus_, 80));
    spec_.max_length = 100;
    spec_.mini_batch_words = 200;
    spec_.maxi_batch = 3;
  }
  std::unique_ptr<TrainingData> data(const RankSlice& share = {}, Gather gather = {}) {
    return std::make_unique<TrainingData>(*corpus_, *vocabulary_, *vocabulary_, spec_, excluded_,
                                          share, std::move(gather), noise_, context_,
                                          &*alignments_);
  }

  // The word of each piece of a sentence; -1: of the sentences before it, each with a separator.
  std::vector<int> words(const std::vector<std::int32_t>& ids, int steps, int sentences, int b,
                         std::int64_t context = 0) const {
    std::vector<int> words;
    int word = -1;
    for (int t = 0; t < steps; ++t) {
      const std::int32_t id = ids[static_cast<std::size_t>(t * sentences + b)];
      if (id == vocabulary_->eos() && context == 0) break;
      if (context == 0) word += vocabulary_->starts_word(id) ? 1 : 0;
      words.push_back(word);
      if (id == vocabulary_->eos()) --context;
    }
    return words;
  }
  // Every link and no other; returns the number of links.
  std::int64_t expect_links(const Batch& batch) const {
    const auto& links = dynamic_cast<const BatchLinks&>(*batch.extra);
    EXPECT_EQ(std::ssize(links.sentences()), batch.sentences);
    std::int64_t count = 0;
    for (int b = 0; b < batch.sentences; ++b) {
      const std::int64_t line = batch.lines[static_cast<std::size_t>(b)];
      const std::vector<int> source = words(batch.source, batch.source_steps, batch.sentences, b,
                                            std::min<std::int64_t>(context_, line)),
                             target =
                                 words(batch.target_out, batch.target_steps, batch.sentences, b);
      Links expected, found;
      for (int s = 0; s < std::ssize(source); ++s)
        for (int t = 0; t < std::ssize(target); ++t)
          if (line % 5 != 0 && source[s] >= 0 && source[s] + target[t] == words_of(line) - 1)
            expected.emplace(s, t);
      const Ids& ids = links.sentences()[static_cast<std::size_t>(b)];
      for (std::size_t i = 0; i < ids.size(); i += 2) {
        EXPECT_TRUE(found.emplace(ids[i], ids[i + 1]).second);
        EXPECT_TRUE(i == 0 || std::pair(ids[i - 1], ids[i - 2]) < std::pair(ids[i + 1], ids[i]));
      }
      EXPECT_EQ(found, expected) << "line " << line + 1;
      count += std::ssize(found);
    }
    return count;
  }

  TemporaryFiles files_;
  std::optional<ParallelCorpus> corpus_;
  std::optional<Alignments> alignments_;
  std::optional<Vocabulary> vocabulary_;
  DataSpec spec_;
  NoiseSpec noise_;
  std::vector<std::int64_t> excluded_;
  int context_ = 0;
};

TEST_F(GuidedAlignment, LinksFollowTheirPairs) {
  struct Case {
    NoiseSpec noise = {};
    int max_length = 100;
    bool crop = false;
    LengthUnit unit = LengthUnit::pieces;
    std::vector<std::int64_t> excluded = {};
    int context = 0;
  };
  const std::vector<Case> cases{{},
                                {.max_length = 20, .excluded = {3, 4, 77}},
                                {.max_length = 12, .crop = true},
                                {.max_length = 4, .crop = true, .unit = LengthUnit::words},
                                {.noise = {0.2, 0.2, 0.6, 0.6, 0}},
                                {.noise = {-1, -1, -1, -1, 0.3}, .max_length = 15, .crop = true},
                                {.noise = {0.3, 0, 0.3, 0.5, 0.2}, .max_length = 14},
                                {.max_length = 1000, .context = 2}};
  for (const Case& c : cases) {
    noise_ = c.noise;
    spec_.max_length = c.max_length;
    spec_.max_length_crop = c.crop;
    spec_.max_length_unit = c.unit;
    excluded_ = c.excluded;
    context_ = c.context;
    const auto loader = data();
    std::vector<Batch> batches;
    std::vector<LoaderState> states{{}};
    std::int64_t links = 0;
    while (loader->epochs() < 2) {
      batches.push_back(loader->next());
      states.push_back(loader->state());
      links += expect_links(batches.back());
    }
    EXPECT_GT(links, 300);
    const auto same = [](const Batch& a, const Batch& b) {
      return a.lines == b.lines && dynamic_cast<const BatchLinks&>(*a.extra).sentences() ==
                                       dynamic_cast<const BatchLinks&>(*b.extra).sentences();
    };
    const std::size_t middle = batches.size() / 2;
    loader->restore(states[middle]);
    for (std::size_t i = middle; i < batches.size(); ++i)
      EXPECT_TRUE(same(loader->next(), batches[i])) << i;

    // Two processes, each of which encodes one half of the text.
    std::barrier meeting(2);
    std::vector<Ids> given(2);
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 2; ++rank)
      ranks.emplace_back([&, rank] {
        const auto shared = data({rank, 2}, [&, rank](const Ids& mine) {
          given[static_cast<std::size_t>(rank)] = mine;
          meeting.arrive_and_wait();
          std::vector<Ids> all = given;
          meeting.arrive_and_wait();
          return all;
        });
        for (const Batch& batch : batches) {
          const Batch part = shared->next(), expected = take(batch, {rank, 2});
          EXPECT_TRUE(part.sentences == 0 ? expected.sentences == 0 : same(part, expected));
        }
      });
    for (std::thread& rank : ranks) rank.join();
  }
}

TEST_F(GuidedAlignment, LinksOfPartsAndRowsAreThoseOfTheBatch) {
  const auto loader = data();
  for (int i = 0; i < 4; ++i) {
    const Batch batch = loader->next();
    ASSERT_GT(batch.sentences, 4);
    expect_links(slice(batch, 1, batch.sentences - 2));
    expect_links(take(batch, {1, 3}));
    for (const Batch& shaped : {batch, in_round_shape(batch)}) {
      const auto& links = dynamic_cast<const BatchLinks&>(*shaped.extra);
      const LinkedRows rows = linked_rows(links, shaped.target_steps, shaped.sentences);
      ASSERT_EQ(std::ssize(rows.offsets), shaped.target_steps * shaped.sentences + 1);
      std::vector<Links> found(links.sentences().size());
      for (int row = 0; row < shaped.target_steps * shaped.sentences; ++row)
        for (std::int32_t k = rows.offsets[row]; k < rows.offsets[row + 1]; ++k)
          found.at(row % shaped.sentences).emplace(rows.sources[k], row / shaped.sentences);
      for (std::size_t b = 0; b < found.size(); ++b) {
        Links expected;
        const Ids& ids = links.sentences()[b];
        for (std::size_t k = 0; k < ids.size(); k += 2) expected.emplace(ids[k], ids[k + 1]);
        EXPECT_EQ(found[b], expected);
      }
    }
  }
  for (const Batch& batch : loader->largest_batches()) {
    const auto& links = dynamic_cast<const BatchLinks&>(*batch.extra);
    EXPECT_EQ(std::ssize(links.sentences()), batch.sentences);
  }
}

TEST_F(GuidedAlignment, ErrorsNameFileAndLine) {
  alignments_->check();
  const auto refusal = [&](const std::string& text) -> std::string {
    const std::string path = files_.write("wrong", text);
    try {
      Alignments(path, *corpus_).check();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::data);
      const std::string what = error.what();
      return what.starts_with(path) ? what.substr(path.size()) : "not of the file: " + what;
    }
    return "";
  };
  const std::string rest(pairs - 2, '\n');
  EXPECT_EQ(refusal("0-0 2-2\n\n" + rest), "");  // pairs without links
  EXPECT_EQ(refusal("\n0-0 2:2\n" + rest),
            ":2: '2:2' is no link; expected the positions of two words, such as 0-2");
  EXPECT_EQ(refusal("0-3\n\n" + rest),
            ":1: link 0-3: the target has 3 words; expected a position from 0 to 2");
  EXPECT_EQ(refusal("\n4-0\n" + rest),
            ":2: link 4-0: the source has 4 words; expected a position from 0 to 3");
  EXPECT_NE(refusal("\n" + rest).find(": has 119 lines, but "), std::string::npos);
  EXPECT_NE(refusal("\n\n\n" + rest).find(": has 121 lines, but "), std::string::npos);
  EXPECT_NE(refusal("").find(": has 0 lines, but "), std::string::npos);
  EXPECT_THROW(Alignments(files_.folder() + "/none", *corpus_), Error);
}

}  // namespace
}  // namespace nmt
