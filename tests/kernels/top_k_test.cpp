#include "kernels/decoding/top_k.h"

#include "core/rng.h"
#include "core/threads/thread_pool.h"
#include "tests/kernels/guarded_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(TopK, AgreesWithAStableSort) {
  Rng rng(5);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (const int width : {1, 5, 127, 128, 129, 1000}) {
      for (const int k : {1, 4, 12, 200}) {
        const int rows = 5;
        test::Guarded<float> x(rows * width);
        for (float& value : x) value = static_cast<float>(rng.below(40)) - 20.0f;  // many ties
        x[0] = -infinity;
        const std::vector<std::int32_t> skip{0, 3};
        test::Guarded<float> values(rows * k);
        std::vector<std::int32_t> columns(rows * k);
        top_k(Cpu{&pool}, rows, width, x.data(), k, skip, values.data(), columns.data());
        for (int r = 0; r < rows; ++r) {
          const float* row = x.data() + r * width;
          std::vector<int> order;
          for (int i = 0; i < width; ++i)
            if (i != 0 && i != 3) order.push_back(i);
          std::stable_sort(order.begin(), order.end(),
                           [&](int a, int b) { return row[a] > row[b]; });
          for (int i = 0; i < k; ++i) {
            const bool there = i < static_cast<int>(order.size());
            EXPECT_EQ(columns[r * k + i], there ? order[i] : -1)
                << width << ' ' << k << ' ' << r << ' ' << i;
            EXPECT_EQ(values[r * k + i], there ? row[order[i]] : -infinity);
          }
        }
      }
    }
  }
}

TEST(TopK, ShowsANanAndLeavesOutMinusInfinity) {
  ThreadPool pool(1);
  test::Guarded<float> x(600, 1.0f);
  x[517] = std::nanf("");
  x[300 + 7] = 2.0f;
  test::Guarded<float> values(4);
  std::vector<std::int32_t> columns(4);
  top_k(Cpu{&pool}, 2, 300, x.data(), 2, {}, values.data(), columns.data());
  EXPECT_EQ(columns[0], 0);
  EXPECT_EQ(columns[1], 1);
  EXPECT_TRUE(std::isnan(values[2]));
  EXPECT_EQ(columns[2], 217);
  const test::Guarded<float> none(10, -infinity);
  top_k(Cpu{&pool}, 1, 10, none.data(), 2, {}, values.data(), columns.data());
  EXPECT_EQ(columns[0], -1);
}

}  // namespace
}  // namespace nmt::kernels
