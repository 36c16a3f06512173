#include "core/error.h"
#include "training_data_case.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

namespace nmt {
namespace {

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
