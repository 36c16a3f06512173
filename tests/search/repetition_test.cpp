#include "search/repetition.h"

#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

void expect_repetition(const std::vector<std::int32_t>& ids, int times, int length, int begin) {
  const Repetition found = longest_repetition(ids);
  EXPECT_EQ(found.times, times);
  if (times == 1) return;
  EXPECT_EQ(found.length, length);
  EXPECT_EQ(found.begin, begin);
}

TEST(Repetition, IsCounted) {
  expect_repetition({}, 1, 0, 0);
  expect_repetition({5}, 1, 0, 0);
  expect_repetition({1, 2, 3, 1, 2, 4}, 1, 0, 0);
  expect_repetition({1, 2, 2, 3}, 2, 1, 1);
  expect_repetition({9, 1, 2, 1, 2, 1, 2, 7}, 3, 2, 1);
  expect_repetition({1, 2, 1, 2, 1}, 2, 2, 0);              // the last occurrence is incomplete
  expect_repetition({4, 4, 4, 4, 4, 1, 2, 1, 2}, 5, 1, 0);  // the most often
  expect_repetition({1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}, 2, 8, 0);
  expect_repetition({1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, 0,
                    0);  // longer sequences are not considered
}

}  // namespace
}  // namespace nmt
