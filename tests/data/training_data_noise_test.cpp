#include "text/noise.h"
#include "text/vocabulary/train_vocabulary.h"
#include "training_data_case.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace nmt {

bool TrainingDataTest::expect_noised(const Batch& batch, int b, std::int64_t epoch) const {
  const std::int64_t line = batch.lines[static_cast<std::size_t>(b)];
  std::string source = text(Side::source, line), target = text(Side::target, line);
  const bool changed = TextNoise(noise_, spec_.seed).apply(source, target, epoch, line);
  const auto known = [&](const std::string& all) {
    return vocabulary_->decode(vocabulary_->encode(all));
  };
  EXPECT_EQ(vocabulary_->decode(sentence(batch, Side::source, b)), known(source));
  EXPECT_EQ(vocabulary_->decode(sentence(batch, Side::target, b)), known(target));
  return changed;
}

namespace {

// The pairs of each epoch are the noised text, encoded; also for processes that share the data and
// after restore().
TEST_F(TrainingDataTest, NoiseIsDrawnForEachEpoch) {
  source_.clear();
  target_.clear();
  for (int i = 0; i < 300; ++i) {
    source_ += fmt::format("pair {} of a dog that runs over the grass.\n", i);
    target_ += fmt::format("paar {} eines hundes, der läuft.\n", i);
  }
  corpus_.emplace(files_.write("s", source_), files_.write("t", target_));
  std::string all = source_ + target_;
  std::transform(all.begin(), all.end(), all.begin(), [](char c) { return std::toupper(c); });
  const std::string texts[] = {source_, target_, all};
  vocabulary_.emplace(train_vocabulary(
                          3, [&](std::int64_t i) { return std::string_view(texts[i]); },
                          {.size = 100, .max_line_bytes = 16383}, "test")
                          .vocabulary);
  noise_ = {0.2, 0.2, 0.3, 0.3};
  spec_.max_length = 100;
  TrainingData loader = data();
  std::vector<Batch> batches;
  std::vector<LoaderState> states{{}};
  int changed = 0;
  while (loader.epochs() < 3) {
    const Batch batch = loader.next();
    const auto epoch = static_cast<std::int64_t>(states.back().epoch);
    for (int b = 0; b < batch.sentences; ++b) changed += expect_noised(batch, b, epoch);
    batches.push_back(batch);
    states.push_back(loader.state());
  }
  // 1 - 0.6 * 0.7 * 0.7 = 0.706 of 900 pairs, standard deviation 13.7.
  EXPECT_NEAR(changed, 635, 70);
  loader.restore(states[batches.size() / 2]);
  for (std::size_t i = batches.size() / 2; i < batches.size(); ++i)
    EXPECT_TRUE(same(loader.next(), batches[i])) << i;
  Sharing(3).run(
      [&](const RankSlice& share, Gather gather) {
        return std::make_unique<TrainingData>(*corpus_, *vocabulary_, *vocabulary_, spec_,
                                              std::span<const std::int64_t>(), share, gather,
                                              noise_);
      },
      [&](int rank, TrainingData& shared) {
        for (const Batch& batch : batches) EXPECT_TRUE(same(shared.next(), take(batch, {rank, 3})));
      });
}

// Pieces differ between epochs, their text does not; also with noise and after restore().
TEST_F(TrainingDataTest, BpeDropoutIsDrawnForEachEpoch) {
  for (const double noise : {0.0, 0.3}) {
    noise_ = {noise, 0, noise, noise, 0.2};
    spec_.max_length = 100;
    TrainingData loader = data();
    std::vector<Batch> batches;
    std::vector<LoaderState> states{{}};
    std::map<std::int64_t, std::set<Ids>> cuts;
    while (loader.epochs() < 4) {
      const Batch batch = loader.next();
      const auto epoch = static_cast<std::int64_t>(states.back().epoch);
      for (int b = 0; b < batch.sentences; ++b) {
        expect_noised(batch, b, epoch);
        cuts[batch.lines[static_cast<std::size_t>(b)]].insert(sentence(batch, Side::source, b));
      }
      batches.push_back(batch);
      states.push_back(loader.state());
    }
    EXPECT_TRUE(std::any_of(cuts.begin(), cuts.end(),
                            [](const auto& line) { return line.second.size() > 2; }));
    loader.restore(states[batches.size() / 2]);
    for (std::size_t i = batches.size() / 2; i < batches.size(); ++i)
      EXPECT_TRUE(same(loader.next(), batches[i])) << i;
  }
}

TEST_F(TrainingDataTest, NoiseMakesNoPairTooLong) {
  noise_ = {1, 0, 0, 0};
  std::string seen = "OTHERXANDEXT";  // capitals are single pieces, so capitals are longer
  for (int i = 0; i < 50; ++i) seen += " other text anderer text";
  corpus_.emplace(files_.write("s", "other text\ntext\n"), files_.write("t", "anderer text\nt\n"));
  const auto lines = [&](std::int64_t) { return std::string_view(seen); };
  vocabulary_.emplace(train_vocabulary(1, lines, {.size = 60}, "test").vocabulary);
  spec_.max_length = static_cast<int>(vocabulary_->encode("anderer text").size());
  ASSERT_GT(std::ssize(vocabulary_->encode("OTHER TEXT")), spec_.max_length);
  TrainingData loader = data();
  std::set<std::string> sources;
  while (loader.epochs() < 1) {
    const Batch batch = loader.next();
    for (int b = 0; b < batch.sentences; ++b) {
      const Ids source = sentence(batch, Side::source, b);
      sources.insert(vocabulary_->decode(source));
    }
  }
  const bool fits = std::ssize(vocabulary_->encode("TEXT")) <= spec_.max_length;
  EXPECT_EQ(sources, (std::set<std::string>{"other text", fits ? "TEXT" : "text"}));
  EXPECT_EQ(loader.drops().too_long, 0);
}

}  // namespace
}  // namespace nmt
