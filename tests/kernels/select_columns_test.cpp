#include "kernels/products/select_columns.h"

#include "core/threads/thread_pool.h"
#include "kernels/products/bf16/gemm_bf16.h"
#include "kernels/products/gemm.h"
#include "kernels/products/int8/gemm_int8.h"
#include "kernels/softmax_loss.h"
#include "tests/kernels/random_floats.h"

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

// A product with the selected columns is bit-identical to those columns of the full product.
template <class T, class Pack, class Multiply>
void expect_the_same_columns(std::int64_t whole_size,
                             const std::function<std::int64_t(std::int64_t)>& part_size,
                             const Pack& pack_it, const Multiply& multiply, std::int64_t k,
                             std::int64_t n, const Cpu& cpu) {
  const Floats a = random_floats(5 * k, 1), b = random_floats(k * n, 2);
  test::Guarded<T> packed(static_cast<std::size_t>(whole_size));
  pack_it(b.data(), packed.data());
  Floats all(static_cast<std::size_t>(5 * n));
  multiply(n, a.data(), packed.data(), all.data());
  for (const std::int64_t chosen : {1, 15, 16, 17, 32, 40}) {
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < chosen; ++i)
      ids.push_back(static_cast<std::int32_t>((i * 37 + 3) % n));
    test::Guarded<T> part(static_cast<std::size_t>(part_size(chosen)), T{1});
    select_columns(cpu, k, n, ids, packed.data(), part.data());
    Floats some(static_cast<std::size_t>(5 * chosen));
    multiply(chosen, a.data(), part.data(), some.data());
    for (std::int64_t r = 0; r < 5; ++r)
      for (std::int64_t j = 0; j < chosen; ++j)
        ASSERT_EQ(some[static_cast<std::size_t>(r * chosen + j)],
                  all[static_cast<std::size_t>(r * n + ids[static_cast<std::size_t>(j)])])
            << chosen << " columns, row " << r << ", column " << j;
  }
}

TEST(SelectColumns, AProductWithThemIsAPartOfTheWhole) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const Cpu cpu{&pool};
    for (const std::int64_t k : {1, 31, 64}) {
      const std::int64_t n = 101;
      const auto size = [&](std::int64_t columns) { return packed_size(k, columns); };
      expect_the_same_columns<float>(
          size(n), size, [&](const float* b, float* to) { pack(cpu, false, k, n, b, n, to); },
          [&](std::int64_t columns, const float* a, const float* w, float* c) {
            gemm_packed(cpu, 5, columns, k, a, k, w, false, c, columns);
          },
          k, n, cpu);
      expect_the_same_columns<std::uint16_t>(
          packed_bf16_size(k, n),
          [&](std::int64_t columns) { return packed_bf16_size(k, columns); },
          [&](const float* b, std::uint16_t* to) { pack_bf16(cpu, false, k, n, b, n, to); },
          [&](std::int64_t columns, const float* a, const std::uint16_t* w, float* c) {
            gemm_bf16(cpu, 5, columns, k, a, k, w, false, c, columns);
          },
          k, n, cpu);
      expect_the_same_columns<std::byte>(
          packed_int8_size(k, n),
          [&](std::int64_t columns) { return packed_int8_size(k, columns); },
          [&](const float* b, std::byte* to) { pack_int8(cpu, false, k, n, b, n, to); },
          [&](std::int64_t columns, const float* a, const std::byte* w, float* c) {
            gemm_int8(cpu, 5, columns, k, a, k, w, false, c, columns);
          },
          k, n, cpu);
    }
  }
}

TEST(SelectColumns, LogSumExpIsOfEachRowsOwnColumns) {
  ThreadPool pool(2);
  const std::int64_t rows = 4, vocabulary = 70, width = 33;
  const Floats logits = random_floats(rows * vocabulary, 3);
  const std::vector<std::vector<std::int32_t>> lists{{5}, {0, 1, 2, 69}, {}, {}};
  std::vector<std::vector<std::int32_t>> own = lists;
  for (std::int32_t i = 0; i < width; ++i) own[2].push_back(2 * i);
  for (std::int32_t i = 0; i < 17; ++i) own[3].push_back(3 * i + 1);
  std::vector<std::span<const std::int32_t>> columns(own.begin(), own.end());
  Floats picked(static_cast<std::size_t>(rows * width)), sums(static_cast<std::size_t>(rows));
  log_sum_exp_of_columns({&pool}, vocabulary, logits.data(), columns, width, picked.data(),
                         sums.data());
  for (std::size_t r = 0; r < own.size(); ++r) {
    double sum = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(width); ++j) {
      const float value = picked[r * width + j];
      if (j >= own[r].size()) {
        ASSERT_EQ(value, -std::numeric_limits<float>::infinity());
        continue;
      }
      ASSERT_EQ(value, logits[r * vocabulary + static_cast<std::size_t>(own[r][j])]);
      sum += std::exp(double{value});
    }
    EXPECT_NEAR(sums[r], std::log(sum), 2e-6);
    // The same row, alone and with another width.
    Floats alone(own[r].size());
    float one = 0;
    log_sum_exp_of_columns({&pool}, vocabulary, logits.data() + r * vocabulary,
                           std::span(columns).subspan(r, 1),
                           static_cast<std::int64_t>(own[r].size()), alone.data(), &one);
    EXPECT_EQ(one, sums[r]);
  }
}

}  // namespace
}  // namespace nmt::kernels
