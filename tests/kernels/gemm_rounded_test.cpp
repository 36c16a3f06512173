// Products whose inputs are rounded to bfloat16 (ProductMethod::bfloat16()), or to three numbers
// of it (bfloat16x3()), against double precision: those of this processor, and those of AVX-512
// BF16 and of AMX over emulated instructions. Where the processor or the loaded kernels have no
// AVX-512 BF16, those of this processor multiply in float32.

#include "core/threads/thread_pool.h"
#include "kernels/products/bf16/bf16_products.h"
#include "kernels/products/bfloat16.h"
#include "kernels/products/gemm.h"
#include "kernels/products/gemm_batched.h"
#include "kernels/products/product_method.h"
#include "tests/kernels/amx/emulated_products.h"
#include "tests/kernels/reference_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

std::vector<double> all_rounded(const Floats& values) {
  std::vector<double> out;
  for (const float value : values) out.push_back(rounded(value));
  return out;
}

struct Form {
  bool ta, tb;
  std::int64_t m, n, k;
};

// C = op(A) op(B) + beta C. With one part, over the rounded inputs up to float32 rounding of the
// sums, and over the given inputs up to a relative error of 2^-8 of each input; with three, over
// the given inputs up to float32 rounding. Returns the largest relative error over the given
// inputs.
double expect_product(int parts, const Form& f, const Floats& a, std::int64_t lda, const Floats& b,
                      std::int64_t ldb, float beta, const Floats& before, const Floats& c,
                      std::int64_t ldc) {
  double largest = 0;
  const std::vector<double> a_rounded = all_rounded(a), b_rounded = all_rounded(b);
  for (std::int64_t i = 0; i < f.m; ++i)
    for (std::int64_t j = 0; j < ldc && at(i, ldc, j) < c.size(); ++j) {
      if (j >= f.n) {
        EXPECT_EQ(c[at(i, ldc, j)], before[at(i, ldc, j)]) << "written past the row's end";
        continue;
      }
      const double start = beta == 0.0f ? 0.0 : double{beta} * before[at(i, ldc, j)];
      double exact = start, sum = start, scale = std::abs(start), products = 0;
      for (std::int64_t l = 0; l < f.k; ++l) {
        const std::size_t x = f.ta ? at(l, lda, i) : at(i, lda, l);
        const std::size_t y = f.tb ? at(j, ldb, l) : at(l, ldb, j);
        const double term = a_rounded[x] * b_rounded[y], plain = double{a[x]} * b[y];
        exact += plain;
        sum += term;
        scale += std::abs(term);
        products += std::abs(plain);
      }
      // Six products of parts are six sums.
      const auto terms = static_cast<double>(f.k + (parts == 1 ? 0 : 6));
      const double sums = 6e-8 * (2 + std::sqrt(terms)) * scale + 1e-30;
      // (1 + 2^-8)^2 - 1; two products of parts below 2^-9 and 2^-18 are left out.
      const double inputs = (parts == 1 ? 0x1p-7 + 0x1p-16 : 0x1p-26) * products;
      const double value = c[at(i, ldc, j)];
      if (parts == 1) {
        EXPECT_NEAR(value, sum, sums) << "m,n,k " << f.m << ',' << f.n << ',' << f.k;
      }
      EXPECT_NEAR(value, exact, sums + inputs);
      if (products > 0) largest = std::max(largest, std::abs(value - exact) / products);
      if (testing::Test::HasFailure()) return largest;
    }
  return largest;
}

enum class By {
  processor,
  emulated_pairs,
  emulated_amx,
  processor_in_three,
  emulated_amx_in_three
};

std::string name_of(By by) {
  const char* const names[] = {"Processor", "EmulatedPairs", "EmulatedAmx", "ProcessorInThree",
                               "EmulatedAmxInThree"};
  return names[static_cast<int>(by)];
}
const Bf16Products* products_of(By by) {
  switch (by) {
    case By::processor: return &bf16_products();
    case By::emulated_pairs: return emulated_pair_products();
    case By::emulated_amx: return emulated_amx_products();
    case By::processor_in_three: return amx_split_products();
    case By::emulated_amx_in_three: return emulated_amx_split_products();
  }
  return nullptr;
}

class GemmRounded : public testing::TestWithParam<By> {
 protected:
  void SetUp() override {
    if (GetParam() == By::processor) return;
    const Bf16Products* const found = products_of(GetParam());
    // They read panels of 32 columns.
    if (!found || packed_panel() != 32)
      GTEST_SKIP() << "needs a processor and kernels with "
                   << (GetParam() == By::processor_in_three ? "AMX" : "AVX-512");
    products_ = std::make_unique<ProductMethod>(*found);
  }
  const ProductMethod* products() const {
    return products_ ? products_.get() : &ProductMethod::bfloat16();
  }
  int parts() const { return products()->bf16_products()->parts; }
  // Some emulations are slow.
  bool is_slow() const {
    return GetParam() == By::emulated_amx_in_three || GetParam() == By::emulated_pairs;
  }

 private:
  std::unique_ptr<ProductMethod> products_;
};

INSTANTIATE_TEST_SUITE_P(, GemmRounded,
                         testing::Values(By::processor, By::emulated_pairs, By::emulated_amx,
                                         By::processor_in_three, By::emulated_amx_in_three),
                         [](const auto& by) { return name_of(by.param); });

// CTest looks for this text in kernels.pairs, whose other tests would test float32 tiles.
TEST(PairInstructions, AreThoseOfThisProcessor) {
  if (!bf16_products().is_native) GTEST_SKIP() << "this processor has no AVX-512 BF16";
}

TEST_P(GemmRounded, EqualsDoublePrecisionInEveryForm) {
  double largest = 0;
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    const Cpu cpu{&pool, products()};
    for (std::int64_t m : {1, 3, 31, is_slow() ? 35 : 131})
      for (std::int64_t n : {1, 17, 33, 97})
        for (std::int64_t k : {1, 2, 33, is_slow() ? 297 : 1031})
          for (int form = 0; form < 4; ++form) {
            const Form f{(form & 1) != 0, (form & 2) != 0, m, n, k};
            const std::int64_t lda = (f.ta ? m : k) + 2, ldb = (f.tb ? k : n) + 1, ldc = n + 3;
            const Floats a = random_matrix(f.ta ? k : m, f.ta ? m : k, lda, 1),
                         b = random_matrix(f.tb ? n : k, f.tb ? k : n, ldb, 2);
            const Floats before = random_matrix(m, n, ldc, 3);
            const float beta = (m + n + k) % 3 == 0 ? 0.0f : 1.0f;
            Floats c = before;
            gemm(cpu, f.ta, f.tb, m, n, k, a.data(), lda, b.data(), ldb, beta, c.data(), ldc);
            largest =
                std::max(largest, expect_product(parts(), f, a, lda, b, ldb, beta, before, c, ldc));
            if (HasFailure()) return;
          }
  }
  if (parts() == 1) {
    EXPECT_GT(largest, 0x1p-9) << "the inputs are not rounded";
  }
}

TEST_P(GemmRounded, TheBitsDependNeitherOnTheThreadsNorOnPackingNorOnTheRows) {
  const std::int64_t n = is_slow() ? 99 : 333, k = is_slow() ? 205 : 777;
  for (std::int64_t m : {5, 29, is_slow() ? 67 : 150})
    for (int form = 0; form < 4; ++form) {
      const bool ta = form & 1, tb = form & 2;
      const Floats a = random_floats(m * k, 13), b = random_floats(k * n, 14);
      const Floats rows = op(ta, m, k, a);
      Floats reference(static_cast<std::size_t>(m * n)), rowwise(reference.size());
      ThreadPool one(1);
      const Cpu single{&one, products()};
      Floats packed(static_cast<std::size_t>(packed_size(single, k, n)));
      pack(single, tb, k, n, b.data(), tb ? k : n, packed.data());
      gemm_packed(single, m, n, k, rows.data(), k, packed.data(), false, reference.data(), n);
      for (std::int64_t r = 0; r < m; ++r)
        gemm_packed_rows(single, 1, n, k, &rows[at(r, k, 0)], k, packed.data(), true,
                         &rowwise[at(r, n, 0)], n);
      ASSERT_EQ(rowwise, reference);
      for (int threads : {1, 2, 3, 5}) {
        ThreadPool pool(threads);
        Floats c(reference.size());
        gemm({&pool, products()}, ta, tb, m, n, k, a.data(), ta ? m : k, b.data(), tb ? k : n, 0.0f,
             c.data(), n);
        ASSERT_EQ(c, reference) << m << " rows, form " << form << ", " << threads << " threads";
      }
    }
}

// Every product of a block-diagonal matrix, plain and packed, against its block alone.
TEST_P(GemmRounded, ABatchEqualsItsProducts) {
  ThreadPool pool(2);
  const Cpu cpu{&pool, products()};
  const std::int64_t rows = 19;
  const BlockDiagonal d{3, 2, 7, 37, 2 * 37};
  const std::int64_t in = d.groups * d.k, out = d.groups * d.planes * d.n;
  const Floats x = random_floats(rows * in, 1), w = random_floats(in * d.ld, 2);
  Floats expected(static_cast<std::size_t>(rows * out)), y(expected.size()), again(expected.size());
  for (std::int64_t g = 0; g < d.groups; ++g)
    for (std::int64_t p = 0; p < d.planes; ++p)
      gemm(cpu, false, false, rows, d.n, d.k, &x[at(0, 1, g * d.k)], in,
           &w[at(g * d.k, d.ld, p * d.n)], d.ld, 0.0f,
           &expected[at(0, 1, (p * d.groups + g) * d.n)], out);
  gemm_batched(cpu, d.product(), false, false, rows, d.n, d.k, x.data(), in, w.data(), d.ld, 0.0f,
               y.data(), out);
  EXPECT_EQ(y, expected);
  Floats packed(static_cast<std::size_t>(packed_batched_size(cpu, d.product(), d.k, d.n)));
  pack_batched(cpu, d.product(), false, d.k, d.n, w.data(), d.ld, packed.data());
  gemm_packed_batched(cpu, d.product(), rows, d.n, d.k, x.data(), in, packed.data(), false,
                      again.data(), out);
  EXPECT_EQ(again, expected);
}

TEST_P(GemmRounded, KeepsTheRangeOfFloat32) {
  ThreadPool pool(1);
  const Cpu cpu{&pool, products()};
  const auto product = [&](float x, float y) {
    float c = 0;
    gemm(cpu, false, false, 1, 1, 1, &x, 1, &y, 1, 0.0f, &c, 1);
    return c;
  };
  EXPECT_EQ(product(0x1p100f, 0x1p27f), 0x1p127f);
  EXPECT_EQ(product(0x1p-100f, 0x1p-20f), 0x1p-120f);
  const float above = product(std::numeric_limits<float>::max(), 1.0f);  // 3.39e38
  EXPECT_TRUE(parts() == 1 ? std::isinf(above) : std::isnan(above));
  EXPECT_TRUE(std::isnan(product(NAN, 1.0f)));
  EXPECT_TRUE(std::isnan(product(INFINITY, 0.0f)));
}

// Those of this processor, or over emulated tiles.
class GemmInThreeParts : public testing::Test {
 protected:
  void SetUp() override {
    const Bf16Products* const split =
        amx_split_products() ? amx_split_products() : emulated_amx_split_products();
    if (!split || packed_panel() != 32) GTEST_SKIP() << "needs AVX-512";
    library_ = std::make_unique<ProductMethod>(*split);
  }
  Cpu cpu(bool in_three) { return {&pool_, in_three ? library_.get() : nullptr}; }

 private:
  ThreadPool pool_{1};
  std::unique_ptr<ProductMethod> library_;
};

// Beside the errors of a chain of multiply-adds in float32.
TEST_F(GemmInThreeParts, HaveASmallerErrorThanFloat32OnAverage) {
  for (const std::int64_t k : {64, 512, 4096}) {
    const std::int64_t m = 24, n = 40;
    const Floats a = random_floats(m * k, 5), b = random_floats(k * n, 6);
    double squares[2] = {};
    for (const bool in_three : {false, true}) {
      Floats c(static_cast<std::size_t>(m * n));
      gemm(cpu(in_three), false, false, m, n, k, a.data(), k, b.data(), n, 0.0f, c.data(), n);
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (std::int64_t l = 0; l < k; ++l) sum += double{a[at(i, k, l)]} * b[at(l, n, j)];
          squares[in_three] += (c[at(i, n, j)] - sum) * (c[at(i, n, j)] - sum);
        }
    }
    EXPECT_LT(squares[1], squares[0]) << k;
    EXPECT_GT(squares[1], 0) << k;
  }
}

// What products of small numbers lose: parts below 1.2e-38 are 0.
TEST_F(GemmInThreeParts, KeepAllBitsDownTo2e31) {
  const auto product = [&](float x, float y) {
    float c = 0;
    gemm(cpu(true), false, false, 1, 1, 1, &x, 1, &y, 1, 0.0f, &c, 1);
    return c;
  };
  for (const float one : {0x1.fffffep0f, 0x1.010101p0f, -0x1.80c0a2p0f, 0x1.555556p0f})
    for (const float size : {0x1p-102f, 1.0f, 0x1p100f})
      EXPECT_EQ(product(one * size, 1.0f), one * size) << one << " times " << size;
}

}  // namespace
}  // namespace nmt::kernels
