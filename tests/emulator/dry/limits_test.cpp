// Shapes that kernels do not hold: the error names the limit.

#include "dry/large.h"
#include "kernels/pointwise.h"
#include "kernels/products/gemm.h"
#include "kernels/recurrent/recurrence.h"

#include <algorithm>

#include <gmock/gmock.h>

namespace nmt::test {
namespace {

class Limits : public LargeShapes {
 protected:
  template <class Call>
  static void expect_error(Call&& call, const std::string& message) {
    EXPECT_THAT(call, testing::ThrowsMessage<Error>(testing::HasSubstr(message)));
  }
};

// A dimension x of a grid is for the symbols, y for parts of their rows.
TEST_F(Limits, WidthOfScatteredRows) {
  constexpr std::int64_t widest = 65535 * 128;
  const std::int32_t *const ids = upload({0}), *const runs = upload(kernels::id_runs({{0}}));
  const float* const x = make(widest + 1);
  float* const y = make(widest + 1);
  kernels::scatter_add_rows(on(), 1, widest, 1, ids, runs, x, y);
  expect_written("scatter_add_kernel", 4.0 * widest);
  expect_error([&] { kernels::scatter_add_rows(on(), 1, widest + 1, 1, ids, runs, x, y); },
               "a grid of 1 x 65536 x 1 blocks: at most 2147483647 x 65535 x 65535 are possible");
}

TEST_F(Limits, RowsOfASum) {
  constexpr std::int64_t max_size = 65535 * 256;
  const float* const x = make(max_size + 1);
  float* const sums = make(1);
  kernels::sum_rows(on(), max_size, 1, x, sums);
  expect_error([&] { kernels::sum_rows(on(), max_size + 1, 1, x, sums); },
               "sum over 16776961 rows: at most 16776960 are possible");
}

TEST_F(Limits, WidthOfElements) {
  constexpr std::int64_t widest = (std::int64_t{1} << 31) - 1;
  const float* const x = make(widest + 1);
  float* const y = make(widest + 1);
  kernels::copy_columns(on(), 1, widest, x, widest, y, widest, false);
  expect_written("each: copy_columns", 4.0 * widest);
  expect_error(
      [&] { kernels::copy_columns(on(), 1, widest + 1, x, widest + 1, y, widest + 1, false); },
      "rows of 2147483648 elements: at most 2147483647 are possible");
}

TEST_F(Limits, SizesOfProducts) {
  constexpr std::int64_t max_size = (std::int64_t{1} << 31) - 1;
  start(Precision::float32);
  const float* const x = make(max_size + 1);
  float* const y = make(max_size + 1);
  kernels::gemm(on(), false, false, max_size, 1, 1, x, 1, x, 1, 0.0f, y, 1);
  EXPECT_EQ(work("product").calls, 1);
  expect_error(
      [&] { kernels::gemm(on(), false, false, max_size + 1, 1, 1, x, 1, x, 1, 0.0f, y, 1); },
      "1 products [2147483648,1] x [1,1] with rows 1, 1 and 1 elements apart: each of "
      "these numbers is at most 2147483647");
  expect_error(
      [&] { kernels::gemm(on(), false, false, 1, 1, 1, x, max_size + 1, x, 1, 0.0f, y, 1); },
      "rows 2147483648, 1 and 1 elements apart");
}

TEST_F(Limits, PlanesOfUnits) {
  const auto unit = std::ranges::find_if(kernels::units(), [](const kernels::Unit& each) {
    return each.inputs == 4 && !each.has_recurrent_product() && each.states == 1;
  });
  kernels::Recurrence a;
  a.cell.unit = &*unit;
  a.steps = a.batch = 1;
  constexpr std::int64_t widest = ((std::int64_t{1} << 31) - 1) / 4;
  a.x = make(4 * (widest + 1));
  a.initial[0] = a.x;
  a.states[0] = make(widest + 1);
  a.cell.width = widest;
  kernels::recurrence_forward(on(), a);
  expect_written("forward_kernel", 4.0 * widest);
  a.cell.width = widest + 1;
  expect_error([&] { kernels::recurrence_forward(on(), a); },
               "rows of 4 planes of 536870912 channels: at most 536870911 are possible");
}

}  // namespace
}  // namespace nmt::test
