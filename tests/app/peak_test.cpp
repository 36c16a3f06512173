#include "app/benchmark/peak/peak.h"

#include "core/error.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::app::bench {
namespace {

// Also the numbers that equal parts leave over. The values are small integers, whose sums are
// exact.
TEST(Peak, TheReadLoopReadsEveryNumberOnce) {
  for (const std::int64_t n : {0, 1, 7, 63, 64, 65, 1000, 4099})
    for (const int streams : {1, 4, 8}) {
      std::vector<float> x(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13);
      const float once = std::accumulate(x.begin(), x.end(), 0.0f);
      for (const int times : {1, 3}) {
        float sum = -1;
        EXPECT_EQ(run_read_loop(x.data(), n, streams, times, &sum), times * 4 * n);
        EXPECT_EQ(sum, static_cast<float>(times) * once) << n << " in " << streams;
      }
    }
  float sum;
  EXPECT_THROW(run_read_loop(nullptr, 0, 3, 1, &sum), Error);
}

// All elements are 1, so an output is the number of its products.
TEST(Peak, TheTileLoopCountsItsProducts) {
  float once = 0, sum = 0;
  const std::int64_t operations = run_tile_loop(1, &once);
  EXPECT_EQ(run_tile_loop(5, &sum), 5 * operations);
  EXPECT_EQ(sum, once);
  EXPECT_EQ(operations % (2 * static_cast<std::int64_t>(once)), 0);
}

}  // namespace
}  // namespace nmt::app::bench
