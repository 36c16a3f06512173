#include "kernels/products/bf16/gemm_bf16.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "kernels/products/bf16/bf16_products.h"
#include "kernels/products/gemm.h"
#include "tests/kernels/reference_values.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

using Packed = test::Guarded<std::uint16_t>;

Packed pack_whole(const Cpu& cpu, bool transpose, std::int64_t k, std::int64_t n, const Floats& b) {
  Packed packed(static_cast<std::size_t>(packed_bf16_size(k, n)));
  pack_bf16(cpu, transpose, k, n, b.data(), transpose ? k : n, packed.data());
  return packed;
}

TEST(Bf16, RoundsToTheNearest) {
  Floats values = random_floats(10000, 3);
  // Ties round to even: 1 + 2^-8 down, 1 + 3 * 2^-8 up.
  for (const float value : {0.0f, 1.0f, 1.00390625f, 1.01171875f, -1.01171875f, 1e-30f, -3e38f})
    values.push_back(value);
  for (const float value : values)
    ASSERT_EQ(double{from_bf16(to_bf16(value))}, rounded(value)) << value;
  EXPECT_EQ(from_bf16(to_bf16(1.00390625f)), 1.0f);
  EXPECT_EQ(from_bf16(to_bf16(1.01171875f)), 1.015625f);
  EXPECT_TRUE(std::signbit(from_bf16(to_bf16(-0.0f))));
  EXPECT_TRUE(std::isinf(from_bf16(to_bf16(std::numeric_limits<float>::max()))));
  std::uint32_t bits = 0x7F800001;  // a NaN whose truncated upper half would be infinity
  float nan;
  std::memcpy(&nan, &bits, sizeof nan);
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(nan))));
}

// A is rounded too where products of bfloat16 are faster.
double input(float value) {
  return fast_bf16_products() ? rounded(value) : double{value};
}

TEST(GemmBf16, EqualsDoublePrecisionOverRoundedValues) {
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const Cpu cpu{&pool};
    for (std::int64_t m : {1, 2, 3, 4, 5, 13, 14, 15, 31, 64})
      for (std::int64_t n : {1, 3, 31, 33, 257})
        for (std::int64_t k : {1, 3, 256, 1030}) {
          const bool tb = (m + n) % 2 != 0, accumulate = (m + k) % 2 != 0;
          const std::int64_t lda = k + 1, ldb = tb ? k : n, ldc = n + 1;
          const Floats a = random_matrix(m, k, lda, 4), b = random_floats(n * k, 5),
                       before = random_matrix(m, n, ldc, 6);
          Floats c = before;
          gemm_bf16(cpu, m, n, k, a.data(), lda, pack_whole(cpu, tb, k, n, b).data(), accumulate,
                    c.data(), ldc);
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < ldc && at(i, ldc, j) < c.size(); ++j) {
              if (j >= n) {
                ASSERT_EQ(c[at(i, ldc, j)], before[at(i, ldc, j)]) << "written past the row's end";
                continue;
              }
              double sum = accumulate ? double{before[at(i, ldc, j)]} : 0.0, scale = std::abs(sum);
              for (std::int64_t l = 0; l < k; ++l) {
                const double term =
                    input(a[at(i, lda, l)]) * rounded(tb ? b[at(j, ldb, l)] : b[at(l, ldb, j)]);
                sum += term;
                scale += std::abs(term);
              }
              const double bound = 6e-8 * (2 + std::sqrt(static_cast<double>(k))) * scale + 1e-30;
              ASSERT_NEAR(c[at(i, ldc, j)], sum, bound) << "m,n,k " << m << ',' << n << ',' << k;
            }
        }
  }
}

TEST(GemmBf16, ARowDependsNeitherOnItsNeighborsNorOnTheThreads) {
  const std::int64_t rows = 67, n = 333, k = 777;
  const Floats a = random_floats(rows * k, 7), b = random_floats(k * n, 8),
               start = random_floats(rows * n, 9);
  ThreadPool one(1);
  const Packed packed = pack_whole({&one}, false, k, n, b);
  Floats reference = start;
  for (std::int64_t r = 0; r < rows; ++r)
    gemm_bf16_rows(1, n, k, &a[at(r, k, 0)], k, packed.data(), true, &reference[at(r, n, 0)], n);
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (std::int64_t m = 1; m <= rows; ++m) {
      Floats c = start;
      gemm_bf16({&pool}, m, n, k, a.data(), k, packed.data(), true, c.data(), n);
      ASSERT_EQ(
          std::memcmp(c.data(), reference.data(), static_cast<std::size_t>(m * n) * sizeof(float)),
          0)
          << m << " rows, " << threads << " threads";
    }
  }
}

TEST(GemmBf16, GatheredColumnsAreTheRoundedWeights) {
  ThreadPool pool(2);
  const std::int64_t k = 33, n = 77;
  const Floats b = random_floats(n * k, 12);
  std::vector<std::int32_t> ids;
  for (std::int32_t id = n - 1; id >= 0; --id) ids.push_back(id);
  Floats out(static_cast<std::size_t>(n * k));
  gather_bf16({&pool}, n, k, ids.data(), pack_whole({&pool}, true, k, n, b).data(), out.data());
  for (std::int64_t r = 0; r < n; ++r)
    for (std::int64_t i = 0; i < k; ++i)
      ASSERT_EQ(double{out[at(r, k, i)]}, rounded(b[at(ids[r], k, i)]));
}

TEST(GemmBf16, RefusesWhatIsNotFinite) {
  ThreadPool pool(1);
  for (const float wrong : {NAN, -INFINITY, std::numeric_limits<float>::max()}) {
    Floats b = random_floats(20, 1);
    b[7] = wrong;
    EXPECT_THROW(pack_whole({&pool}, false, 4, 5, b), Error) << wrong;
  }
}

}  // namespace
}  // namespace nmt::kernels
