#pragma once

#include "data/training_data.h"
#include "tests/data/corpus_vocabulary.h"
#include "tests/data/temporary_files.h"

#include <barrier>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace nmt {

/// What sentence b of a batch holds at each step, </s> and padding included.
inline Ids sentence(const Batch& batch, Side side, int b) {
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

inline bool same(const Batch& a, const Batch& b) {
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
        const std::unique_ptr<TrainingData> data = make(
            RankSlice{rank, size_}, [this, rank](const Ids& mine) { return gather(rank, mine); });
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

}  // namespace nmt
