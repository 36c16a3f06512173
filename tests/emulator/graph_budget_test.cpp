#include "cuda/runtime/graph_budget.h"

#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace nmt::cuda {
namespace {

using Key = GraphBudget::Key;

// A key of work that makes one call, as GraphCache treats the key.
struct Replays {
  GraphBudget budget;
  std::int64_t max_graphs;
  std::map<std::int64_t, Key> keys;
  std::set<const Key*> seen;
  std::int64_t replayed = 0, captured = 0;

  explicit Replays(std::int64_t graphs) : max_graphs(graphs) {}

  void use(std::int64_t name) {
    Key& key = keys[name];
    budget.count_use(key);
    if (key.has_graph()) {
      ++replayed;
      return;
    }
    if (seen.insert(&key).second ||
        !budget.admits(key, 1, max_graphs, [this](Key& other) { budget.remove(other); }))
      return;
    ++captured;
    budget.add(key, 1);
  }
};

// scripts/bench/simulate_graphs.py has the same keys and checks the same file against its own rule.
TEST(GraphBudget, IsThatOfTheSimulation) {
  std::ifstream file(NMT_SOURCE_DIR "/tests/emulator/graph_rooms.txt");
  std::string word;
  std::int64_t graphs, uses, replayed, captured;
  int lines = 0;
  for (; file >> word >> graphs >> uses >> replayed >> captured; ++lines) {
    Replays found(graphs);
    std::uint64_t state = 1;
    for (std::int64_t i = 0; i < uses; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const std::uint64_t draw = state >> 48;
      found.use(static_cast<std::int64_t>(60 * draw * draw * draw >> 48) + i / 3000 * 7);
      ASSERT_LE(found.budget.calls(), graphs);
    }
    EXPECT_EQ(found.replayed, replayed) << graphs << " graphs, " << uses << " uses";
    EXPECT_EQ(found.captured, captured) << graphs << " graphs, " << uses << " uses";
  }
  EXPECT_EQ(lines, 12);
}

TEST(GraphBudget, LargeGraphsNeedSeveralPlaces) {
  GraphBudget budget;
  Key rare, small, often, large;
  const auto use = [&](Key& key, int times) {
    for (int i = 0; i < times; ++i) budget.count_use(key);
  };
  use(rare, 2);
  use(small, 3);
  use(often, 9);
  use(large, 5);
  budget.add(rare, 40);
  budget.add(small, 30);
  budget.add(often, 30);
  EXPECT_EQ(budget.calls(), 100);
  std::set<const Key*> evicted;
  const auto evict = [&](Key& key) {
    evicted.insert(&key);
    budget.remove(key);
  };
  // The graph of `often` stays, so there is no room, and nothing is lost.
  EXPECT_FALSE(budget.admits(large, 90, 100, evict));
  EXPECT_TRUE(evicted.empty());
  EXPECT_TRUE(budget.admits(large, 60, 100, evict));
  EXPECT_EQ(evicted, (std::set<const Key*>{&rare, &small}));
  budget.add(large, 60);
  EXPECT_EQ(budget.graphs(), 2);
  // Its own graph takes no room when it is captured again.
  EXPECT_TRUE(budget.admits(large, 70, 100, evict));
  budget.add(large, 70);
  EXPECT_EQ(budget.calls(), 100);
  budget.remove(large);
  budget.remove(large);
  EXPECT_EQ(budget.calls(), 30);
}

TEST(GraphBudget, KeysOfThePastMakePlace) {
  GraphBudget budget;
  Key past, present;
  for (int i = 0; i < 6; ++i) budget.count_use(past);
  budget.add(past, 1);
  for (int i = 0; i < 4; ++i) budget.count_use(present);
  const auto ignore = [](Key&) {};
  EXPECT_FALSE(budget.admits(present, 1, 1, ignore));
  Key other;
  for (std::int64_t i = 10; i < GraphBudget::uses_to_halve; ++i) budget.count_use(other);
  budget.count_use(present);  // 4 / 2 + 1 uses, as many as 6 / 2
  EXPECT_FALSE(budget.admits(present, 1, 1, ignore));
  budget.count_use(present);
  EXPECT_TRUE(budget.admits(present, 1, 1, ignore));
}

}  // namespace
}  // namespace nmt::cuda
