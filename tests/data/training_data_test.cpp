#include "data/training_data.h"

#include "core/error.h"
#include "tests/data/corpus_vocabulary.h"
#include "tests/data/temporary_files.h"
#include "text/noise.h"
#include "text/vocabulary/train_vocabulary.h"

#include <algorithm>
#include <barrier>
#include <cctype>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace nmt {
namespace {

/// What sentence b of a batch holds at each step, </s> and padding included.
Ids sentence(const Batch& batch, Side side, int b) {
  const bool source = side == Side::source;
  Ids ids;
  for (int step = 0; step < (source ? batch.source_steps : batch.target_steps); ++step)
    ids.push_back((source
                       ? batch.source
                       : batch.target_out)[static_cast<std::size_t>(step * batch.sentences + b)]);
  return ids;
}

class TrainingDataTest : public testing::Test {
 protected:
  /// 400 pairs of 1 to 30 numbers. Line 50 has an empty source, line 60 a blank target, line 70 a
  /// very long source.
  void SetUp() override {
    for (int i = 0; i < 400; ++i) {
      const auto numbers = [&](int count, int from, int step) {
        std::vector<int> all;
        for (int k = 0; k <= count; ++k) all.push_back((i * from + k * step) % 100);
        return fmt::format("{}", fmt::join(all, " "));
      };
      std::string source = numbers(i * 7 % 30, 31, 17), target = numbers(i * 11 % 30, 13, 7);
      if (i == 50) source.clear();
      if (i == 60) target.assign(2, '\t');
      if (i == 70) source += std::string(200, 'q');
      source_ += source + '\n';
      target_ += target + '\n';
    }
    corpus_.emplace(files_.write("s", source_), files_.write("t", target_));
    ASSERT_EQ(corpus_->pairs(), 400);
    vocabulary_.emplace(corpus_vocabulary(*corpus_, 110));
    spec_.max_length = 64;
    spec_.mini_batch_words = 300;
    spec_.maxi_batch = 5;
    spec_.seed = 3;
  }
  TrainingData data(std::span<const std::int64_t> excluded = {}) {
    return TrainingData(*corpus_, *vocabulary_, *vocabulary_, spec_, excluded, {}, {}, noise_);
  }
  std::string text(Side side, std::int64_t line) const {
    std::string storage;
    return std::string(corpus_->line(side, line, storage));
  }

  /// Checks that a sentence pair of a batch has the text of its line with the noise of that epoch;
  /// returns whether noise changed it. Some letters may be unknown to the vocabulary.
  bool expect_noised(const Batch& batch, int sentence, std::int64_t epoch) const;

  TemporaryFiles files_;
  std::string source_, target_;
  std::optional<ParallelCorpus> corpus_;
  std::optional<Vocabulary> vocabulary_;
  DataSpec spec_;
  NoiseSpec noise_;
};

bool same(const Batch& a, const Batch& b) {
  return a.lines == b.lines && a.source == b.source && a.target_in == b.target_in &&
         a.target_out == b.target_out && a.source_mask == b.source_mask &&
         a.target_mask == b.target_mask && a.source_tokens == b.source_tokens &&
         a.target_tokens == b.target_tokens;
}

/// Simulates processes that share the data by threads: runs body(rank, data) on all ranks at once.
class Sharing {
 public:
  explicit Sharing(int size)
      : size_(size), barrier_(size), given_(static_cast<std::size_t>(size)) {}
  template <class Make, class Body>
  void run(Make&& make, Body&& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank)
      threads.emplace_back([&, rank] {
        const std::unique_ptr<TrainingData> data =
            make(Share{rank, size_}, [this, rank](const Ids& mine) { return gather(rank, mine); });
        body(rank, *data);
      });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::vector<Ids> gather(int rank, const Ids& mine) {
    given_[static_cast<std::size_t>(rank)] = mine;
    barrier_.arrive_and_wait();
    std::vector<Ids> all = given_;
    barrier_.arrive_and_wait();
    return all;
  }
  int size_;
  std::barrier<> barrier_;
  std::vector<Ids> given_;
};

TEST_F(TrainingDataTest, SharesAreTheBatches) {
  int context = 0;
  const auto make = [&](const Share& share, Gather gather) {
    return std::make_unique<TrainingData>(*corpus_, *vocabulary_, *vocabulary_, spec_,
                                          std::span<const std::int64_t>(), share, gather, noise_,
                                          context);
  };
  for (const auto& [crop, unit] : {std::pair(false, LengthUnit::pieces),
                                   {true, LengthUnit::pieces},
                                   {true, LengthUnit::words},
                                   {false, LengthUnit::words}}) {
    context = crop ? 2 : 0;
    spec_.max_length_crop = crop;
    spec_.max_length_unit = unit;
    spec_.max_length = crop || unit == LengthUnit::words ? 12 : 64;
    TrainingData alone(*corpus_, *vocabulary_, *vocabulary_, spec_, {}, {}, {}, noise_, context);
    std::vector<Batch> whole;
    std::vector<LoaderState> states{{}};
    std::vector<DropCounts> drops;
    while (alone.epochs() < 2.5) {
      whole.push_back(alone.next());
      states.push_back(alone.state());
      drops.push_back(alone.drops());
    }
    for (const int size : {2, 3, 40})
      Sharing(size).run(make, [&](int rank, TrainingData& shared) {
        for (const std::size_t start : {std::size_t{0}, whole.size() / 3, std::size_t{7}}) {
          shared.restore(states[start]);
          for (std::size_t i = start; i < whole.size(); ++i) {
            if (i % 9 == static_cast<std::size_t>(rank))
              std::this_thread::sleep_for(std::chrono::microseconds(200));
            const Batch batch = shared.next(), expected = take(whole[i], {rank, size});
            EXPECT_TRUE(same(batch, expected)) << size << ' ' << rank << ' ' << i;
            EXPECT_TRUE(batch.sentences == 0 || batch.place == expected.place);
            EXPECT_EQ(shared.state(), states[i + 1]);
            EXPECT_EQ(shared.drops(), drops[i]);
          }
        }
      });
  }
}

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
                          {.size = 100, .max_line_bytes = 100000}, "test")
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
      [&](const Share& share, Gather gather) {
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

TEST_F(TrainingDataTest, EachEncodesItsShareAlone) {
  const auto make = [&](const Share& share, Gather gather) {
    return std::make_unique<TrainingData>(*corpus_, *vocabulary_, *vocabulary_, spec_,
                                          std::span<const std::int64_t>(), share, gather);
  };
  for (const int size : {1, 2, 5}) {
    std::vector<std::int64_t> encoded(static_cast<std::size_t>(size));
    Sharing(size).run(make, [&](int rank, TrainingData& shared) {
      while (shared.epochs() < 20) shared.next();
      encoded[static_cast<std::size_t>(rank)] = shared.encoded();
    });
    // At most an epoch and a few windows ahead.
    for (const std::int64_t pairs : encoded) {
      EXPECT_GE(pairs, 20 * 400 / size);
      EXPECT_LE(pairs, 23 * 400 / size);
    }
  }
  EXPECT_THROW(make({0, 2}, {}), Error);
}

TEST_F(TrainingDataTest, EveryPairOnceAPass) {
  TrainingData loader = data();
  std::vector<std::vector<std::int64_t>> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::map<std::int64_t, int> seen;
    double before = epoch;
    orders.emplace_back();
    do {
      const Batch batch = loader.next();
      EXPECT_LE(batch.sentences * batch.target_steps, 300);
      EXPECT_LE(batch.sentences * batch.source_steps, 600);
      EXPECT_GT(loader.epochs(), before);
      before = loader.epochs();
      for (int b = 0; b < batch.sentences; ++b) {
        const std::int64_t line = batch.lines[static_cast<std::size_t>(b)];
        ++seen[line];
        orders.back().push_back(line);
        const Ids source = sentence(batch, Side::source, b),
                  target = sentence(batch, Side::target, b);
        EXPECT_EQ(vocabulary_->decode(source), text(Side::source, line));
        EXPECT_EQ(vocabulary_->decode(target), text(Side::target, line));
      }
    } while (loader.epochs() < epoch + 1);
    EXPECT_EQ(loader.epochs(), epoch + 1);
    EXPECT_EQ(seen.size(), 397u);
    for (const auto& [line, times] : seen) EXPECT_EQ(times, 1) << line;
    EXPECT_FALSE(seen.contains(50) || seen.contains(60) || seen.contains(70));
    EXPECT_EQ(loader.drops().empty, 2);
    EXPECT_EQ(loader.drops().too_long, 1);
    EXPECT_EQ(loader.drops().longest_line, 71);
    EXPECT_EQ(loader.drops().longest,
              static_cast<std::int64_t>(vocabulary_->encode(text(Side::source, 70)).size()));
    EXPECT_EQ(loader.state().epoch, epoch + 1);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
}

TEST_F(TrainingDataTest, ContinuesExactlyFromEveryState) {
  std::vector<Batch> whole;
  std::vector<LoaderState> states{LoaderState{}};
  std::vector<DropCounts> drops;
  {
    TrainingData loader = data();
    while (loader.epochs() < 2.5) {
      whole.push_back(loader.next());
      states.push_back(loader.state());
      drops.push_back(loader.drops());
    }
  }
  ASSERT_GT(whole.size(), 50u);
  TrainingData again = data();
  for (std::size_t i = 0; i + 4 < whole.size(); ++i) {
    again.restore(LoaderState::parse(states[i].text()));
    EXPECT_EQ(again.state(), states[i]);
    for (std::size_t k = i; k < i + 4; ++k) {
      ASSERT_TRUE(same(again.next(), whole[k])) << "from " << i << ", batch " << k;
      ASSERT_EQ(again.state(), states[k + 1]);
      ASSERT_EQ(again.drops(), drops[k]);
    }
  }
}

TEST_F(TrainingDataTest, SequenceDoesNotDependOnTiming) {
  spec_.mini_batch_words = 100;
  TrainingData fast = data(), slow = data();
  for (int i = 0; i < 300; ++i) {
    const Batch one = fast.next();
    if (i % 30 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    ASSERT_TRUE(same(one, slow.next()));
  }
  spec_.seed = 4;
  TrainingData other = data();
  fast.restore({});
  EXPECT_FALSE(same(fast.next(), other.next()) && same(fast.next(), other.next()));
}

TEST_F(TrainingDataTest, LimitOfSentencesAndCropping) {
  spec_.mini_batch_words = 0;
  spec_.mini_batch = 7;
  spec_.max_length = 12;
  spec_.max_length_crop = true;
  TrainingData loader = data();
  std::int64_t cropped = 0, pairs = 0;
  while (loader.epochs() < 1) {
    const Batch batch = loader.next();
    EXPECT_LE(batch.sentences, 7);
    EXPECT_LE(batch.source_steps, 13);
    EXPECT_LE(batch.target_steps, 13);
    pairs += batch.sentences;
    for (const std::int64_t line : batch.lines) {
      cropped += vocabulary_->encode(text(Side::source, line)).size() > 12 ||
                 vocabulary_->encode(text(Side::target, line)).size() > 12;
    }
  }
  EXPECT_EQ(pairs, 398);
  EXPECT_EQ(loader.drops().cropped, cropped);
  EXPECT_EQ(loader.drops().too_long, 0);
}

// Line i has i * 7 % 30 + 1 words in the source and i * 11 % 30 + 1 in the target, except for the
// three lines of SetUp().
std::int64_t longer_side(std::int64_t line) {
  return std::max(line * 7 % 30, line * 11 % 30) + 1;
}

TEST_F(TrainingDataTest, LengthInWords) {
  spec_.max_length = 22;
  spec_.max_length_unit = LengthUnit::words;
  std::int64_t fitting = 0, too_long = 0;
  for (std::int64_t i = 0; i < 400; ++i) {
    if (i == 50 || i == 60) continue;
    ++(longer_side(i) > 22 ? too_long : fitting);
  }
  {
    TrainingData loader = data();
    std::int64_t pairs = 0;
    int source = 0, target = 0;
    while (loader.epochs() < 1) {
      const Batch batch = loader.next();
      pairs += batch.sentences;
      source = std::max(source, batch.source_steps);
      target = std::max(target, batch.target_steps);
      for (const std::int64_t line : batch.lines) EXPECT_LE(longer_side(line), 22) << line;
    }
    EXPECT_EQ(pairs, fitting);
    EXPECT_EQ(loader.drops().too_long, too_long);
    EXPECT_EQ(loader.drops().longest, 30);
    EXPECT_NE(loader.drops().text(22, true).find("longer than 22 words"), std::string::npos);
    EXPECT_GT(source, 100);  // line 70: 11 words and a hundred pieces or more
    const Batch longest = loader.largest_batches().front();
    EXPECT_GE(longest.source_steps, source);
    EXPECT_GE(longest.target_steps, target);
  }
  spec_.max_length_crop = true;
  TrainingData loader = data();
  while (loader.epochs() < 1) {
    const Batch batch = loader.next();
    for (int b = 0; b < batch.sentences; ++b) {
      const Ids source = sentence(batch, Side::source, b);
      std::string whole = text(Side::source, batch.lines[static_cast<std::size_t>(b)]) + ' ';
      std::size_t end = 0;
      for (int word = 0; word < 22 && end < whole.size(); ++word) end = whole.find(' ', end) + 1;
      EXPECT_EQ(vocabulary_->decode(source), whole.substr(0, end - 1));
    }
  }
  EXPECT_EQ(loader.drops().cropped, too_long);
}

TEST_F(TrainingDataTest, BatchesOfAWindowAreOfLikeLength) {
  spec_.maxi_batch = 1000;
  TrainingData loader = data();
  std::int64_t padded = 0, tokens = 0;
  std::vector<int> steps;
  while (loader.epochs() < 1) {
    const Batch batch = loader.next();
    padded += batch.sentences * batch.target_steps;
    tokens += batch.target_tokens;
    steps.push_back(batch.target_steps);
  }
  EXPECT_LT(static_cast<double>(padded), 1.1 * static_cast<double>(tokens));
  EXPECT_FALSE(std::is_sorted(steps.begin(), steps.end()));
}

TEST_F(TrainingDataTest, ExcludedLinesTakeNoPart) {
  std::vector<std::int64_t> excluded;
  for (int i = 0; i < 400; i += 3) excluded.push_back(i);
  TrainingData loader = data(excluded);
  EXPECT_EQ(loader.pairs(), 400 - 134);
  while (loader.epochs() < 1) {
    for (const auto line : loader.next().lines) EXPECT_NE(line % 3, 0);
  }
}

TEST_F(TrainingDataTest, ErrorsReachTheConsumer) {
  spec_.max_length = 1;
  spec_.max_length_crop = false;
  const std::string long_lines = files_.write("long", "abc def ghi\nabc def\n");
  const ParallelCorpus corpus(long_lines, long_lines);
  TrainingData loader(corpus, *vocabulary_, *vocabulary_, spec_);
  for (int i = 0; i < 2; ++i) {
    try {
      loader.next();
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::data);
      EXPECT_NE(std::string(error.what()).find("2 longer than 1 tokens"), std::string::npos)
          << error.what();
    }
  }
  TrainingData good = data();
  EXPECT_THROW(good.restore({.window = 400}), Error);
  good.restore({.batch = 1000});
  EXPECT_THROW(good.next(), Error);
  EXPECT_THROW(LoaderState::parse("1 2 3"), Error);
  EXPECT_THROW(LoaderState::parse(LoaderState{}.text() + " x"), Error);
  spec_.mini_batch_words = 0;
  EXPECT_THROW(data(), Error);
}

TEST_F(TrainingDataTest, StopsAtAnyTime) {
  spec_.mini_batch = 1;  // many more batches than are prefetched
  for (int taken = 0; taken < 12; ++taken) {
    TrainingData loader = data();
    for (int i = 0; i < taken; ++i) loader.next();
    if (taken % 3 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (taken % 3 == 2) loader.restore({.epoch = 1});
  }
}

TEST_F(TrainingDataTest, LargestBatchesBoundAllOthers) {
  TrainingData loader = data();
  int source = 0, target = 0, sentences = 0;
  for (const Batch& batch : loader.largest_batches()) {
    source = std::max(source, batch.source_steps);
    target = std::max(target, batch.target_steps);
    sentences = std::max(sentences, batch.sentences);
    EXPECT_LE(batch.sentences * batch.target_steps, 300);
  }
  EXPECT_EQ(source, 65);  // of the line that is dropped
  int longest = 0;
  while (loader.epochs() < 1) {
    const Batch batch = loader.next();
    EXPECT_LE(batch.source_steps, source);
    longest = std::max(longest, batch.target_steps);
  }
  EXPECT_EQ(longest, target);
  EXPECT_GT(sentences, 300 / target);
}

}  // namespace
}  // namespace nmt
