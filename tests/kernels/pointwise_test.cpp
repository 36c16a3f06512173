#include "kernels/pointwise.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "tests/kernels/random_floats.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

const std::int64_t sizes[] = {1, 3, 31, 33, 257, 40001};

template <class Body>
void for_pools(Body&& body) {
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    body(Cpu{&pool});
  }
}

TEST(Pointwise, ElementwiseOpsEqualTheirDefinitions) {
  for_pools([](const Cpu& cpu) {
    for (std::int64_t n : sizes) {
      const Floats x = random_floats(n, 1), y = random_floats(n, 2);
      Floats filled(x.size() + 1, 7.0f), scaled = y, sum(x.size()), in_place = x, tanh(x.size()),
                                         dx = y, times = x;
      fill(cpu, filled.data(), n, 2.5f);
      add_scaled(cpu, n, 0.3f, x.data(), scaled.data());
      scale(cpu, n, 0.3f, times.data(), times.data());
      add(cpu, n, x.data(), y.data(), sum.data());
      add(cpu, n, in_place.data(), y.data(), in_place.data());
      tanh_forward(cpu, n, x.data(), tanh.data());
      tanh_backward(cpu, n, x.data(), y.data(), dx.data());
      EXPECT_EQ(filled.back(), 7.0f);
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(filled[i], 2.5f);
        ASSERT_NEAR(scaled[i], y[i] + 0.3 * x[i], 2e-7);
        ASSERT_EQ(times[i], 0.3f * x[i]);
        ASSERT_EQ(sum[i], x[i] + y[i]);
        ASSERT_EQ(in_place[i], sum[i]);
        ASSERT_NEAR(tanh[i], std::tanh(double{x[i]}), 3e-7);
        ASSERT_NEAR(dx[i], y[i] + double{y[i]} * (1 - double{x[i]} * x[i]), 3e-7);
      }
    }
  });
}

TEST(Pointwise, BiasesAndSumsOfRows) {
  Floats first;
  for_pools([&](const Cpu& cpu) {
    for (std::int64_t rows : {1, 3, 33, 257})
      for (std::int64_t width : {1, 31, 257}) {
        const Floats x = random_floats(rows * width, 3), bias = random_floats(width, 4);
        Floats y(x.size()), sums = bias;
        add_bias(cpu, rows, width, x.data(), bias.data(), y.data());
        sum_rows(cpu, rows, width, x.data(), sums.data());
        for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] + bias[i % bias.size()]);
        for (std::size_t j = 0; j < bias.size(); ++j) {
          double want = bias[j];
          for (std::size_t i = j; i < x.size(); i += bias.size()) want += x[i];
          ASSERT_NEAR(sums[j], want, 5e-5);
        }
        if (rows == 257 && width == 257) {
          if (first.empty()) first = sums;
          ASSERT_EQ(sums, first) << "the order of the sum depends on the threads";
        }
      }
  });
}

TEST(Pointwise, DropoutFollowsPhilox) {
  for_pools([](const Cpu& cpu) {
    for (std::int64_t n : sizes)
      for (float p : {0.0f, 0.1f, 0.5f}) {
        const std::uint64_t key = 0x1234567890ABCDEFu, stream = 0xFEDCBA9876543210u;
        const Floats x = random_floats(n, 5);
        Floats y = x;
        dropout(cpu, 1, n, {}, p, key, stream, y.data(), y.data());
        for (std::size_t i = 0; i < x.size(); ++i) {
          const bool keep = philox(key, i / 4, stream)[i % 4] >= double{p} * 4294967296.0;
          ASSERT_FLOAT_EQ(y[i], keep ? x[i] / (1 - p) : 0.0f) << i;
        }
      }
  });
}

// Sentences 2, 5 and 8 of a batch of 11 get the same masks as in the full batch: with a mask per
// step, one mask for all steps, and for selected rows.
TEST(Pointwise, DropoutOfAPartMatchesTheFullBatch) {
  const std::int64_t steps = 4, whole = 11, part = 3, first = 2, stride = 3;
  const std::vector<std::int32_t> some{0, 1, 4, 11};  // rows of [4,3]
  for_pools([&](const Cpu& cpu) {
    for (std::int64_t width : {1, 3, 10, 64, 67, 256, 300, 1030}) {
      const Floats all(static_cast<std::size_t>(steps * whole * width), 1.0f);
      Floats masks = all, kept = all;
      dropout(cpu, steps * whole, width, {}, 0.4f, 5, 6, all.data(), masks.data());
      const RowMap map{.batch = part, .step = whole, .first = first, .stride = stride};
      dropout(cpu, steps * part, width, map, 0.4f, 5, 6, all.data(), kept.data());
      RowMap shared = map;
      shared.step = 0;
      Floats once = all;
      dropout(cpu, steps * part, width, shared, 0.4f, 5, 6, all.data(), once.data());
      RowMap chosen = map;
      chosen.rows = some.data();
      Floats rows = all;
      dropout(cpu, std::ssize(some), width, chosen, 0.4f, 5, 6, all.data(), rows.data());
      const auto at = [width](const Floats& of, std::int64_t row, std::int64_t i) {
        return of[static_cast<std::size_t>(row * width + i)];
      };
      for (std::int64_t i = 0; i < width; ++i) {
        for (std::int64_t t = 0; t < steps; ++t)
          for (std::int64_t b = 0; b < part; ++b) {
            ASSERT_EQ(at(kept, t * part + b, i), at(masks, t * whole + first + b * stride, i))
                << width << ' ' << t << ' ' << b << ' ' << i;
            ASSERT_EQ(at(once, t * part + b, i), at(masks, first + b * stride, i));
          }
        for (std::size_t r = 0; r < some.size(); ++r)
          ASSERT_EQ(at(rows, static_cast<std::int64_t>(r), i), at(kept, some[r], i));
      }
    }
  });
}

TEST(Pointwise, DropoutKeepsTheExpectedShareAndRefusesOne) {
  ThreadPool pool(2);
  const std::int64_t n = 1 << 20;
  Floats x(static_cast<std::size_t>(n), 1.0f);
  dropout({&pool}, 1, n, {}, 0.3f, 1, 2, x.data(), x.data());
  double sum = 0;
  for (float v : x) sum += v;
  EXPECT_NEAR(sum / static_cast<double>(n), 1.0, 0.004);  // six standard deviations of the mean
  EXPECT_THROW(dropout({&pool}, 1, n, {}, 1.0f, 1, 2, x.data(), x.data()), Error);
}

TEST(Pointwise, GatherAndScatterRows) {
  Floats first;
  for_pools([&](const Cpu& cpu) {
    for (std::int64_t rows : {1, 33, 1000})
      for (std::int64_t width : {1, 31, 257}) {
        const std::int64_t vocabulary = 17;
        Rng rng(6);
        test::Guarded<std::int32_t> ids(static_cast<std::size_t>(rows));
        for (auto& id : ids) id = static_cast<std::int32_t>(rng.below(vocabulary));
        const Floats table = random_floats(vocabulary * width, 7),
                     dy = random_floats(rows * width, 8);
        Floats out(dy.size()), dtable = table;
        gather_rows(cpu, rows, width, ids.data(), table.data(), out.data());
        scatter_add_rows(cpu, rows, width, vocabulary, ids.data(), nullptr, dy.data(),
                         dtable.data());
        std::vector<double> want(table.begin(), table.end());
        for (std::size_t i = 0; i < out.size(); ++i) {
          const auto w = static_cast<std::size_t>(width),
                     at = static_cast<std::size_t>(ids[i / w]) * w + i % w;
          ASSERT_EQ(out[i], table[at]);
          want[at] += dy[i];
        }
        for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(dtable[i], want[i], 5e-5);
        if (rows == 1000 && width == 257) {
          if (first.empty()) first = dtable;
          ASSERT_EQ(dtable, first) << "the order of the sum depends on the threads";
        }
      }
    const std::int32_t wrong = 17;
    float value = 0;
    EXPECT_THROW(scatter_add_rows(cpu, 1, 1, 17, &wrong, nullptr, &value, &value), Error);
  });
}

TEST(Pointwise, AddToRowsAddsEveryRowInItsPlace) {
  for_pools([&](const Cpu& cpu) {
    for (std::int64_t rows : {1, 33, 1000})
      for (std::int64_t width : {1, 31, 257}) {
        std::vector<std::int32_t> targets;
        for (std::int64_t r = 0; r < rows; ++r)
          targets.push_back(static_cast<std::int32_t>(2 * ((r + 7) % rows)));
        const Floats from = random_floats(rows * width, 9),
                     to = random_floats(2 * rows * width, 10);
        Floats out = to, want = to;
        for (std::int64_t i = 0; i < rows * width; ++i)
          want[static_cast<std::size_t>(targets[i / width] * width + i % width)] += from[i];
        add_to_rows(cpu, rows, width, targets.data(), from.data(), out.data());
        ASSERT_EQ(out, want) << rows << ' ' << width;
      }
  });
}

TEST(Pointwise, SymbolRunsAreSortedAndKeepTheirOrder) {
  EXPECT_EQ(id_runs(std::vector<std::int32_t>{}), (std::vector<std::int32_t>{0}));
  EXPECT_EQ(id_runs(std::vector<std::int32_t>{5}), (std::vector<std::int32_t>{0, 0, 1}));
  EXPECT_EQ(id_runs(std::vector<std::int32_t>{7, 2, 7, 9, 2}),
            (std::vector<std::int32_t>{1, 4, 0, 2, 3, /**/ 0, 2, 4, 5, 5, 5}));
  EXPECT_EQ(id_runs(std::vector<std::int32_t>{3, 1}),
            (std::vector<std::int32_t>{1, 0, /**/ 0, 1, 2}));
}

TEST(Pointwise, CopyColumnsMovesABlock) {
  for_pools([](const Cpu& cpu) {
    for (std::int64_t rows : {1, 33, 257})
      for (std::int64_t width : {1, 31, 33}) {
        const std::int64_t from_stride = width + 2, to_stride = width + 5;
        const Floats from = random_floats(rows * from_stride, 9),
                     before = random_floats(rows * to_stride, 10);
        for (bool accumulate : {false, true}) {
          Floats to = before;
          copy_columns(cpu, rows, width, from.data(), from_stride, to.data(), to_stride,
                       accumulate);
          for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t i = 0; i < to_stride; ++i) {
              const auto at = static_cast<std::size_t>(r * to_stride + i),
                         source = static_cast<std::size_t>(r * from_stride + i);
              ASSERT_EQ(to[at], i >= width   ? before[at]
                                : accumulate ? before[at] + from[source]
                                             : from[source]);
            }
        }
      }
  });
}

}  // namespace
}  // namespace nmt::kernels
