#include "data/round_shape.h"

#include <cstdint>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace nmt {
namespace {

TEST(RoundShape, AddsAtMostAnEighth) {
  const int expected[][3] = {{1, 8, 1},   {7, 8, 7},   {9, 8, 10},  {16, 8, 16}, {17, 8, 18},
                             {31, 8, 32}, {33, 8, 36}, {57, 8, 64}, {65, 8, 72}, {65, 4, 68},
                             {10, 4, 10}, {13, 4, 14}, {24, 4, 24}, {25, 4, 28}, {101, 4, 104}};
  for (const auto& [n, largest, rounded] : expected)
    EXPECT_EQ(round_length(n, largest), rounded) << n << " " << largest;
  for (int n = 1; n < 1000; ++n) {
    EXPECT_GE(round_length(n, 8), n);
    EXPECT_LE(round_length(n, 8) - n, n / 8) << n;
  }
}

TEST(RoundShape, AnEmptyBatchHasNoTokens) {
  EXPECT_EQ(round_tokens(0, 0), 0);
}

// scripts/bench/simulate_graphs.py checks the same file against its own rules.
TEST(RoundShape, IsThatOfTheSimulation) {
  std::ifstream file(NMT_SOURCE_DIR "/tests/data/round_shapes.txt");
  std::string kind;
  std::int64_t n, of, rounded;
  int lines = 0;
  for (; file >> kind >> n >> of >> rounded; ++lines) {
    const std::int64_t found = kind == "length"
                                   ? round_length(static_cast<int>(n), static_cast<int>(of))
                                   : round_tokens(n, of);
    EXPECT_EQ(found, rounded) << kind << " " << n << " " << of;
  }
  EXPECT_EQ(lines, 270);
}

// 17 sentences with at most 9 tokens in the source and 13 in the target, without </s>.
Batch example() {
  std::vector<Ids> sources, targets;
  for (int i = 0; i < 17; ++i) {
    sources.push_back(Ids(static_cast<std::size_t>(1 + i % 9), 10 + i));
    targets.push_back(Ids(static_cast<std::size_t>(1 + (i + 4) % 13), 40 + i));
  }
  std::vector<const Ids*> source_pointers, target_pointers;
  for (int i = 0; i < 17; ++i) {
    source_pointers.push_back(&sources[static_cast<std::size_t>(i)]);
    target_pointers.push_back(&targets[static_cast<std::size_t>(i)]);
  }
  return make_batch(source_pointers, target_pointers, 1, 2);
}

TEST(RoundShape, IsOneForAllShares) {
  const Batch batch = example();
  for (const int size : {2, 3, 5, 17})
    for (int rank = 0; rank < size; ++rank) {
      const Batch share = take(batch, {rank, size}), round = in_round_shape(share);
      EXPECT_EQ(round.sentences, round_length((17 + size - 1) / size, 8)) << size << ' ' << rank;
      EXPECT_EQ(round.source_steps, 10);
      EXPECT_EQ(round.target_steps, 14);
      EXPECT_EQ(round.target_tokens, share.target_tokens);
      // A part of a share, as after memory ran out, is as small as it can be.
      EXPECT_EQ(slice(share, 0, 1).of_shares, BatchShape{});
    }
}

TEST(RoundShape, KeepsSentencesAndCountsNoMore) {
  const Batch batch = example();
  const Batch round = in_round_shape(batch);
  EXPECT_EQ(round.sentences, 18);
  EXPECT_EQ(round.source_steps, 10);
  EXPECT_EQ(round.target_steps, 14);
  EXPECT_EQ(round.source_tokens, batch.source_tokens);
  EXPECT_EQ(round.target_tokens, batch.target_tokens);
  EXPECT_EQ(round.slice, batch.slice);
  for (int s = 0; s < round.source_steps; ++s)
    for (int b = 0; b < 18; ++b) {
      const auto at = static_cast<std::size_t>(s * 18 + b),
                 from = static_cast<std::size_t>(s * 17 + b);
      const bool there = s < batch.source_steps && b < 17;
      EXPECT_EQ(round.source[at], there ? batch.source[from] : 2);
      // An added sentence has one token, so that attention has something to read.
      EXPECT_EQ(round.source_mask[at], there               ? batch.source_mask[from]
                                       : s == 0 && b == 17 ? 1.0f
                                                           : 0.0f);
    }
  for (int t = 0; t < round.target_steps; ++t)
    for (int b = 0; b < 18; ++b) {
      const auto at = static_cast<std::size_t>(t * 18 + b),
                 from = static_cast<std::size_t>(t * 17 + b);
      const bool there = t < batch.target_steps && b < 17;
      EXPECT_EQ(round.target_in[at], there ? batch.target_in[from] : 2);
      EXPECT_EQ(round.target_out[at], there ? batch.target_out[from] : 2);
      EXPECT_EQ(round.target_mask[at], there ? batch.target_mask[from] : 0.0f);
    }
}

}  // namespace
}  // namespace nmt
