#include "kernels/recurrent/rearrange.h"

#include "core/threads/thread_pool.h"
#include "tests/kernels/random_floats.h"

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

// Computed by hand: [a b c | d e f] viewed as [2,3] and transposed is [a d | b e | c f].
TEST(Rearrange, TransposesTheGroups) {
  ThreadPool pool(1);
  const Floats x{1, 2, 3, 4, 5, 6};
  Floats y(6);
  rearrange({&pool}, 1, 2, 6, x.data(), y.data());
  EXPECT_EQ(y, (Floats{1, 4, 2, 5, 3, 6}));
  rearrange({&pool}, 1, 3, 6, x.data(), y.data());
  EXPECT_EQ(y, (Floats{1, 3, 5, 2, 4, 6}));
}

TEST(Rearrange, BackIsTheInverseAndAdds) {
  for (int threads : {1, 3})
    for (std::int64_t groups : {1, 2, 3, 4, 8})
      for (std::int64_t part : {1, 5, 16}) {
        ThreadPool pool(threads);
        const std::int64_t rows = 77, width = groups * part;
        const Floats x = random_floats(rows * width, 1);
        Floats y(x.size()), back(x.size());
        rearrange({&pool}, rows, groups, width, x.data(), y.data());
        if (groups > 1 && part > 1) {
          EXPECT_NE(y, x);
        }
        rearrange_back({&pool}, rows, groups, width, y.data(), false, back.data());
        EXPECT_EQ(back, x);
        rearrange_back({&pool}, rows, groups, width, y.data(), true, back.data());
        for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(back[i], 2 * x[i]);
      }
}

}  // namespace
}  // namespace nmt::kernels
