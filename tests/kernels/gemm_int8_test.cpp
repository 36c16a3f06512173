#include "kernels/products/int8/gemm_int8.h"

#include "core/error.h"
#include "core/rng.h"
#include "core/threads/thread_pool.h"
#include "tests/kernels/reference_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

using Packed = test::Guarded<std::byte>;

Packed pack_whole(const Cpu& cpu, bool transpose, std::int64_t k, std::int64_t n, const Floats& b) {
  Packed packed(static_cast<std::size_t>(packed_int8_size(k, n)));
  pack_int8(cpu, transpose, k, n, b.data(), transpose ? k : n, packed.data());
  return packed;
}

TEST(GemmInt8, EqualsTheDefinitionInDoublePrecision) {
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const Cpu cpu{&pool};
    for (std::int64_t m : {1, 4, 6, 7, 12, 31})
      for (std::int64_t n : {1, 16, 33, 61, 64, 125})
        for (std::int64_t k : {1, 3, 31, 256}) {
          const bool transpose = (m + n) % 2 != 0, accumulate = (m + k) % 2 != 0;
          const std::int64_t lda = k + 1, ldc = n + 2;
          const Floats a = random_matrix(m, k, lda, 4), b = random_floats(n * k, 5),
                       before = random_matrix(m, n, ldc, 6);
          Floats c = before;
          const Packed packed = pack_whole(cpu, transpose, k, n, b);
          const bool biased = !accumulate && n % 4 != 0;
          const Floats bias = random_floats(n, 7);
          gemm_int8(cpu, m, n, k, a.data(), lda, packed.data(), accumulate, c.data(), ldc,
                    biased ? bias.data() : nullptr);
          for (std::int64_t i = 0; i < m; ++i) {
            double step = 0;
            for (std::int64_t l = 0; l < k; ++l)
              step = std::max(step, std::abs(double{a[at(i, lda, l)]}) / 127);
            for (std::int64_t j = 0; j < ldc && at(i, ldc, j) < c.size(); ++j) {
              if (j >= n) {
                ASSERT_EQ(c[at(i, ldc, j)], before[at(i, ldc, j)]) << "written past the row's end";
                continue;
              }
              const auto weight = [&](std::int64_t l) {
                return double{transpose ? b[at(j, k, l)] : b[at(l, n, j)]};
              };
              double scale = 0, sum = 0, half = 0;
              for (std::int64_t l = 0; l < k; ++l)
                scale = std::max(scale, std::abs(weight(l)) / 127);
              for (std::int64_t l = 0; l < k; ++l) {
                const double p = a[at(i, lda, l)] / step, q = weight(l) / scale;
                sum += std::nearbyint(p) * std::nearbyint(q);
                // Float may round a value near .5 in the other direction.
                if (std::abs(std::abs(p - std::trunc(p)) - 0.5) < 1e-4) half += std::abs(q) + 1;
                if (std::abs(std::abs(q - std::trunc(q)) - 0.5) < 1e-4) half += std::abs(p) + 1;
              }
              const double added = accumulate ? before[at(i, ldc, j)]
                                   : biased   ? bias[static_cast<std::size_t>(j)]
                                              : 0.0,
                           expected = sum * step * scale + added;
              ASSERT_NEAR(c[at(i, ldc, j)], expected,
                          half * step * scale + 1e-6 * (std::abs(expected) + 1))
                  << "m,n,k " << m << ',' << n << ',' << k << " at " << i << ',' << j
                  << ", threads " << threads;
            }
          }
        }
  }
}

// With fused multiply-add or without: a float product may round to a tie that it is not.
TEST(GemmInt8, RoundsTheExactProductOnEveryInstructionSet) {
  ThreadPool pool(1);
  const std::int64_t k = 65536, n = 32;
  const Floats b = random_floats(k * n, 7);
  test::Guarded<std::int8_t> q(b.size());
  Floats scales(n);
  round_int8(Cpu{&pool}, true, k, n, b.data(), k, q.data(), scales.data());
  for (std::int64_t j = 0; j < n; ++j) {
    float most = 0;
    for (std::int64_t i = 0; i < k; ++i) most = std::max(most, std::abs(b[at(j, k, i)]));
    const double inverse = 127.0f / most;  // of float operands: a float
    for (std::int64_t i = 0; i < k; ++i)
      ASSERT_EQ(q[at(j, k, i)], std::nearbyint(double{b[at(j, k, i)]} * inverse)) << j << ',' << i;
  }
}

TEST(GemmInt8, IsNearTheProductThatItStandsFor) {
  ThreadPool pool(2);
  const std::int64_t m = 20, n = 100, k = 512;
  const Floats a = random_floats(m * k, 1), b = random_floats(k * n, 2);
  Floats c(static_cast<std::size_t>(m * n));
  gemm_int8({&pool}, m, n, k, a.data(), k, pack_whole({&pool}, false, k, n, b).data(), false,
            c.data(), n);
  double error = 0, size = 0;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l) sum += double{a[at(i, k, l)]} * b[at(l, n, j)];
      error += std::pow(c[at(i, n, j)] - sum, 2);
      size += sum * sum;
    }
  EXPECT_LT(std::sqrt(error / size), 0.01);
}

TEST(GemmInt8, ARowDependsNeitherOnItsNeighborsNorOnTheThreads) {
  const std::int64_t rows = 67, n = 333, k = 777;
  const Floats a = random_floats(rows * k, 7), b = random_floats(k * n, 8);
  ThreadPool one(1);
  const Packed packed = pack_whole({&one}, false, k, n, b);
  Floats reference(static_cast<std::size_t>(rows * n));
  for (std::int64_t r = 0; r < rows; ++r)
    gemm_int8_rows(1, n, k, &a[at(r, k, 0)], k, packed.data(), false, &reference[at(r, n, 0)], n);
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (std::int64_t m = 1; m <= rows; m += 3) {
      Floats c(static_cast<std::size_t>(m * n));
      gemm_int8({&pool}, m, n, k, a.data(), k, packed.data(), false, c.data(), n);
      ASSERT_TRUE(std::equal(c.begin(), c.end(), reference.begin()))
          << m << " rows, " << threads << " threads";
    }
  }
}

// Whole numbers up to 127, which quantization does not change, of which `share` are not zero.
Floats whole_numbers(std::int64_t count, double share, std::uint64_t seed) {
  Rng rng(seed);
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values)
    if (rng.uniform() < share) value = 127.0f - static_cast<float>(rng.below(255));
  return values;
}

TEST(GemmInt8, SkipsZerosOfASingleRow) {
  for (const std::int64_t k : {1, 5, 64, 333, 1536, 9000})
    for (const std::int64_t n : {1, 63, 64, 130, 256, 330}) {
      if (int8_rows_size(k, n) == 0) continue;  // this processor does not skip, or k is too long
      Floats b = whole_numbers(k * n, 1, 3), other = whole_numbers(k * n, 1, 4);
      for (std::int64_t j = 0; j < n; ++j) b[at(0, n, j)] = other[at(0, n, j)] = 127;
      for (const int threads : {1, 2, 3})
        for (const double share : {0.0, 0.1, 0.4, 1.0}) {
          ThreadPool pool(threads);
          Floats a = whole_numbers(k, share, 5);
          a[static_cast<std::size_t>(k / 2)] = -127;
          // The copy by rows is of another matrix and shows which of the two is read.
          Packed rows(static_cast<std::size_t>(int8_rows_size(k, n)));
          copy_int8_rows({&pool}, k, n, pack_whole({&pool}, false, k, n, other).data(),
                         rows.data());
          Floats bias = random_floats(n, 6), c(static_cast<std::size_t>(n));
          gemm_int8({&pool}, 1, n, k, a.data(), k, pack_whole({&pool}, false, k, n, b).data(),
                    false, c.data(), n, bias.data(), rows.data());
          const auto product = [&](const Floats& weights, std::int64_t j) {
            double sum = 0;
            for (std::int64_t l = 0; l < k; ++l)
              sum += double{a[static_cast<std::size_t>(l)]} * weights[at(l, n, j)];
            return static_cast<float>(sum) + bias[static_cast<std::size_t>(j)];
          };
          const bool skips = k >= 64 && n >= 256 && share <= 0.1, reads_all = share == 1;
          for (std::int64_t j = 0; j < n; ++j) {
            const float value = c[static_cast<std::size_t>(j)], all = product(b, j),
                        nonzeros = product(other, j);
            ASSERT_TRUE((value == all && !skips) || (value == nonzeros && !reads_all))
                << "k " << k << ", n " << n << ", column " << j << ", share " << share << ", "
                << threads << " threads: " << value << ", not " << nonzeros << " or " << all;
          }
        }
    }
}

// Any values, all zeros, a value that is not finite, and several rows: as without the copy.
TEST(GemmInt8, SkippingZerosChangesNoBit) {
  const std::int64_t k = 700, n = 330;
  const Floats b = random_floats(k * n, 8);
  for (const int threads : {1, 2, 3})
    for (const std::int64_t m : {1, 2, 3})
      for (const float share : {0.0f, 0.2f, 0.4f, 2.0f}) {
        ThreadPool pool(threads);
        const Packed packed = pack_whole({&pool}, false, k, n, b);
        Packed rows(static_cast<std::size_t>(int8_rows_size(k, n)));
        if (!rows.empty()) copy_int8_rows({&pool}, k, n, packed.data(), rows.data());
        Floats a = random_floats(m * k, 9), whole(static_cast<std::size_t>(m * n)), skipped = whole;
        Rng rng(10);
        for (float& value : a)
          if (rng.uniform() >= share) value = 0;
        if (share > 1) a[7] = NAN;
        gemm_int8({&pool}, m, n, k, a.data(), k, packed.data(), false, whole.data(), n);
        gemm_int8({&pool}, m, n, k, a.data(), k, packed.data(), false, skipped.data(), n, nullptr,
                  rows.empty() ? nullptr : rows.data());
        ASSERT_EQ(std::memcmp(whole.data(), skipped.data(), whole.size() * sizeof(float)), 0)
            << m << " rows, share " << share << ", " << threads << " threads";
      }
}

TEST(GemmInt8, ZerosAndWhatIsNotFinite) {
  ThreadPool pool(1);
  const std::int64_t m = 4, n = 5, k = 9;
  Floats a = random_floats(m * k, 1), b = random_floats(k * n, 2),
         c(static_cast<std::size_t>(m * n));
  std::fill_n(a.begin(), k, 0.0f);
  a[at(2, k, 3)] = NAN;
  a[at(3, k, 8)] = INFINITY;
  for (std::int64_t l = 0; l < k; ++l) b[at(l, n, 1)] = 0.0f;
  gemm_int8({&pool}, m, n, k, a.data(), k, pack_whole({&pool}, false, k, n, b).data(), false,
            c.data(), n);
  for (std::int64_t j = 0; j < n; ++j) {
    EXPECT_EQ(c[at(0, n, j)], 0.0f);
    EXPECT_TRUE(std::isnan(c[at(2, n, j)]) && std::isnan(c[at(3, n, j)]));
  }
  EXPECT_EQ(c[at(1, n, 1)], 0.0f);
  EXPECT_TRUE(std::isfinite(c[at(1, n, 0)]));
  b[7] = -INFINITY;
  EXPECT_THROW(pack_whole({&pool}, false, k, n, b), Error);
}

TEST(GemmInt8, UnpackedColumnsAreTheRoundedWeights) {
  ThreadPool pool(2);
  const std::int64_t k = 33, n = 19;
  const Floats b = random_floats(n * k, 12);
  const Packed packed = pack_whole({&pool}, true, k, n, b);
  Floats out(static_cast<std::size_t>(k));
  for (std::int64_t j = 0; j < n; ++j) {
    float most = 0;
    for (std::int64_t i = 0; i < k; ++i) most = std::max(most, std::abs(b[at(j, k, i)]));
    unpack_int8_column(k, n, j, packed.data(), out.data());
    for (std::int64_t i = 0; i < k; ++i)
      ASSERT_NEAR(out[static_cast<std::size_t>(i)], b[at(j, k, i)], 0.501f * most / 127);
  }
}

// Panels that are full and not, from rows and from columns that stand apart.
TEST(GemmInt8, PacksWeightsThatAreRoundedAlready) {
  ThreadPool pool(2);
  for (const bool transpose : {false, true})
    for (const std::int64_t n : {1, 15, 16, 17, 40})
      for (const std::int64_t k : {1, 2, 3, 4, 5, 8, 33}) {
        const std::int64_t ldq = (transpose ? k : n) + 3;
        Rng rng(static_cast<std::uint64_t>(100 * n + k));
        test::Guarded<std::int8_t> q(
            static_cast<std::size_t>(((transpose ? n : k) - 1) * ldq + (transpose ? k : n)));
        for (std::int8_t& value : q) value = static_cast<std::int8_t>(127 - rng.below(255));
        Floats scales(static_cast<std::size_t>(n));
        for (float& scale : scales) scale = 0.25f + static_cast<float>(rng.below(7));
        Packed packed(static_cast<std::size_t>(packed_int8_size(k, n)), std::byte{0x55});
        pack_int8({&pool}, transpose, k, n, q.data(), ldq, scales.data(), packed.data());
        Floats out(static_cast<std::size_t>(k));
        for (std::int64_t j = 0; j < n; ++j) {
          unpack_int8_column(k, n, j, packed.data(), out.data());
          for (std::int64_t i = 0; i < k; ++i)
            ASSERT_EQ(out[static_cast<std::size_t>(i)],
                      scales[static_cast<std::size_t>(j)] *
                          q[static_cast<std::size_t>(transpose ? j * ldq + i : i * ldq + j)])
                << transpose << " " << n << " " << k << " " << i << " " << j;
        }
        // What pads k and the columns is 0, stored as 128, with a scale of 0.
        const std::int64_t columns = (n + 15) / 16 * 16, depth = (k + 3) / 4 * 4;
        for (std::int64_t j = 0; j < columns; ++j)
          for (std::int64_t i = 0; i < depth; ++i)
            if (j >= n || i >= k) {
              const std::int64_t at = j / 16 * 16 * depth + i / 4 * 64 + j % 16 * 4 + i % 4;
              ASSERT_EQ(packed[static_cast<std::size_t>(at)], std::byte{128});
            }
        for (std::int64_t j = n; j < columns; ++j) {
          float scale = 1;
          std::memcpy(&scale, packed.data() + columns * depth + 4 * j, sizeof scale);
          ASSERT_EQ(scale, 0.0f);
        }
      }
}

}  // namespace
}  // namespace nmt::kernels
