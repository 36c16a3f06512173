#include "core/error.h"
#include "data/training_data.h"
#include "tests/data/temporary_files.h"
#include "text/vocabulary/train_vocabulary.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

/// Training pairs with context sentences.
class DocumentTrainingTest : public testing::Test {
 protected:
  struct Pair {
    std::string source, target;
    std::vector<std::int64_t> context;  // of two sentences, by hand
  };
  // Lines 4 and 8 end documents: an empty pair, and an empty source alone.
  const std::vector<Pair> pairs_{
      {"the first lamp", "die erste lampe", {}},
      {"it is red", "sie ist rot", {0}},
      {"it is old", "", {0, 1}},
      {"a door", "eine tuer", {1, 2}},
      {"", "", {}},
      {"the second table", "der zweite tisch", {}},
      {"it is blue", "er ist blau", {5}},
      {"we see it", "wir sehen ihn", {5, 6}},
      {"", "nichts", {}},
      {"a last line", "eine letzte zeile", {}},
      {"it ends", "sie endet", {9}},
  };

  void SetUp() override {
    std::string source, target;
    for (const Pair& pair : pairs_) {
      source += pair.source + "\n";
      target += pair.target + "\n";
    }
    corpus_.emplace(files_.write("s", source), files_.write("t", target));
    const std::string texts[] = {source, target};
    vocabulary_.emplace(train_vocabulary(
                            2, [&](std::int64_t i) { return std::string_view(texts[i]); },
                            {.size = 60, .max_line_bytes = 16383}, "test")
                            .vocabulary);
    spec_.max_length = 200;
    spec_.mini_batch_words = 60;
    spec_.maxi_batch = 3;
  }

  TrainingData data(int sentences, std::span<const std::int64_t> excluded = {}) {
    return TrainingData(*corpus_, *vocabulary_, *vocabulary_, spec_, excluded, {}, {}, noise_,
                        sentences);
  }

  /// The ids of the sources of one epoch by line, without </s> at the end and padding.
  static std::map<std::int64_t, Ids> sources_of_epoch(TrainingData& loader) {
    std::map<std::int64_t, Ids> sources;
    const double epoch = loader.epochs();
    while (loader.epochs() < epoch + 1) {
      const Batch batch = loader.next();
      for (int b = 0; b < batch.sentences; ++b) {
        Ids& ids = sources[batch.lines[static_cast<std::size_t>(b)]];
        for (int step = 0; step < batch.source_steps; ++step) {
          const auto at = static_cast<std::size_t>(step * batch.sentences + b);
          if (batch.source_mask[at] > 0) ids.push_back(batch.source[at]);
        }
        EXPECT_EQ(ids.back(), 2);
        ids.pop_back();
      }
    }
    return sources;
  }

  Ids joined(const std::vector<std::string>& sentences) const {
    Ids all;
    for (const std::string& sentence : sentences) {
      if (!all.empty()) all.push_back(vocabulary_->eos());
      const Ids ids = vocabulary_->encode(sentence);
      all.insert(all.end(), ids.begin(), ids.end());
    }
    return all;
  }

  /// The sources with the last `sentences` context lines of the table.
  std::map<std::int64_t, Ids> expected(std::size_t sentences) const {
    std::map<std::int64_t, Ids> all;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (pairs_[i].source.empty() || pairs_[i].target.empty()) continue;
      std::vector<std::string> texts;
      const auto& context = pairs_[i].context;
      for (std::size_t k = context.size() - std::min(context.size(), sentences); k < context.size();
           ++k)
        texts.push_back(pairs_[static_cast<std::size_t>(context[k])].source);
      texts.push_back(pairs_[i].source);
      all[static_cast<std::int64_t>(i)] = joined(texts);
    }
    return all;
  }

  TemporaryFiles files_;
  std::optional<ParallelCorpus> corpus_;
  std::optional<Vocabulary> vocabulary_;
  DataSpec spec_;
  NoiseSpec noise_{0, 0, 0, 0, 0};
};

TEST_F(DocumentTrainingTest, SourcesFollowTheirContext) {
  for (const int sentences : {0, 1, 2}) {
    TrainingData loader = data(sentences);
    for (int epoch = 0; epoch < 2; ++epoch)
      EXPECT_EQ(sources_of_epoch(loader), expected(static_cast<std::size_t>(sentences)))
          << sentences;
  }
  TrainingData many = data(16);
  EXPECT_EQ(sources_of_epoch(many).at(3),
            joined({"the first lamp", "it is red", "it is old", "a door"}));
}

TEST_F(DocumentTrainingTest, ExcludedPairsAreContext) {
  const std::vector<std::int64_t> excluded{0, 6};
  TrainingData loader = data(2, excluded);
  std::map<std::int64_t, Ids> all = expected(2);
  for (const std::int64_t line : excluded) all.erase(line);
  EXPECT_EQ(sources_of_epoch(loader), all);
}

TEST_F(DocumentTrainingTest, TheOldestSentencesAreDroppedFirst) {
  const auto size = [&](const char* text) { return static_cast<int>(joined({text}).size()); };
  const int door = size("a door"), old = size("it is old"), red = size("it is red");
  const auto source = [&](int limit) {
    spec_.max_length = limit;
    TrainingData loader = data(2);
    for (const auto& [line, ids] : sources_of_epoch(loader)) {
      if (spec_.max_length_unit == LengthUnit::pieces) {
        EXPECT_LE(ids.size(), static_cast<std::size_t>(limit)) << line;
      }
    }
    TrainingData again = data(2);
    return sources_of_epoch(again).at(3);
  };
  const int whole = door + 1 + old + 1 + red;
  EXPECT_EQ(source(whole), joined({"it is red", "it is old", "a door"}));
  EXPECT_EQ(source(whole - 1), joined({"it is old", "a door"}));
  EXPECT_EQ(source(door + 1 + old), joined({"it is old", "a door"}));
  EXPECT_EQ(source(door + old), joined({"a door"}));
  // In words: 3 and 2, and a separator.
  spec_.max_length_unit = LengthUnit::words;
  EXPECT_EQ(source(6), joined({"it is old", "a door"}));
  EXPECT_EQ(source(5), joined({"a door"}));
}

TEST_F(DocumentTrainingTest, ACroppedSentenceHasNoContext) {
  spec_.max_length_crop = true;
  spec_.max_length = 3;
  TrainingData loader = data(2);
  const std::map<std::int64_t, Ids> sources = sources_of_epoch(loader);
  Ids whole = joined({"we see it"});
  ASSERT_GT(whole.size(), 3u);
  whole.resize(3);
  EXPECT_EQ(sources.at(7), whole);
}

TEST_F(DocumentTrainingTest, ContextHasTheNoiseOfItsPair) {
  noise_ = {0.5, 0, 0.5, 0, 0};
  TrainingData loader = data(1);
  int changed = 0;
  for (std::int64_t epoch = 0; epoch < 8; ++epoch) {
    const auto noised = [&](std::int64_t line) {
      const Pair& pair = pairs_[static_cast<std::size_t>(line)];
      std::string source = pair.source, target = pair.target;
      changed += TextNoise(noise_, spec_.seed).apply(source, target, epoch, line);
      return source;
    };
    for (const auto& [line, ids] : sources_of_epoch(loader)) {
      const auto& context = pairs_[static_cast<std::size_t>(line)].context;
      EXPECT_EQ(ids, context.empty() ? joined({noised(line)})
                                     : joined({noised(context.back()), noised(line)}))
          << epoch << ' ' << line;
    }
  }
  EXPECT_GT(changed, 20);
}

TEST_F(DocumentTrainingTest, ContinuesFromEveryState) {
  noise_ = {0.2, 0, 0.3, 0, 0.3};
  TrainingData loader = data(2);
  std::vector<LoaderState> states{{}};
  std::vector<Batch> batches;
  while (loader.epochs() < 3) {
    batches.push_back(loader.next());
    states.push_back(loader.state());
  }
  for (const std::size_t start : {std::size_t{1}, batches.size() / 2}) {
    TrainingData again = data(2);
    again.restore(states[start]);
    for (std::size_t i = start; i < batches.size(); ++i)
      EXPECT_EQ(again.next().source, batches[i].source) << i;
  }
}

TEST_F(DocumentTrainingTest, NoBatchIsLargerThanTheLargest) {
  TrainingData loader = data(2);
  int steps = 0;
  for (int i = 0; i < 20; ++i) steps = std::max(steps, loader.next().source_steps);
  EXPECT_GE(loader.largest_batches().front().source_steps, steps);
  TrainingData alone = data(0);
  EXPECT_LT(alone.largest_batches().front().source_steps, steps);
}

// The words of sentence and context together are limited, so their steps are too.
TEST_F(DocumentTrainingTest, TheLargestBatchHasAsMuchContextAsWordsFit) {
  spec_.max_length_unit = LengthUnit::words;
  for (const bool noised : {false, true}) {
    if (noised) {  // without their final words, more sentences fit
      noise_ = {0.3, 0, 0, 0.5, 0};
      std::string source, target;
      for (const Pair& pair : pairs_) {
        source += pair.source + (pair.source.empty() ? "\n" : " .\n");
        target += pair.target + (pair.target.empty() ? "\n" : " .\n");
      }
      corpus_.emplace(files_.write("s", source), files_.write("t", target));
    }
    for (const int limit : {3, 5, 6, 9, 200}) {
      spec_.max_length = limit;
      for (const int sentences : {1, 2, 5}) {
        TrainingData loader = data(sentences);
        int steps = 0;
        while (loader.epochs() < (noised ? 20 : 1))
          steps = std::max(steps, loader.next().source_steps);
        const int found = loader.largest_batches().front().source_steps;
        if (noised)
          EXPECT_GE(found, steps) << limit << ' ' << sentences;
        else
          EXPECT_EQ(found, steps) << limit << ' ' << sentences;
      }
    }
  }
}

// The longest sentence may be context alone.
TEST_F(DocumentTrainingTest, TheLargestBatchHasContextOfExcludedPairs) {
  corpus_.emplace(files_.write("s", "the first lamp is the last red lamp\nit\nwe\n"),
                  files_.write("t", "die erste lampe\nsie\nwir\n"));
  const std::vector<std::int64_t> excluded{0};
  TrainingData loader = data(1, excluded);
  const std::size_t steps = sources_of_epoch(loader).at(1).size() + 1;
  EXPECT_GE(loader.largest_batches().front().source_steps, static_cast<int>(steps));
}

}  // namespace
}  // namespace nmt
