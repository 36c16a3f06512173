#include "kernels/products/gemm.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "kernels/products/product_method.h"
#include "tests/kernels/reference_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

// C = op(A) op(B) + beta C in double. `scale` is the sum of absolute terms, which bounds the
// rounding error.
void expect_product(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k,
                    const Floats& a, std::int64_t lda, const Floats& b, std::int64_t ldb,
                    float beta, const Floats& before, const Floats& c, std::int64_t ldc) {
  int shown = 0;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < ldc && at(i, ldc, j) < c.size(); ++j) {
      if (j >= n) {
        ASSERT_EQ(c[at(i, ldc, j)], before[at(i, ldc, j)]) << "written past the row's end";
        continue;
      }
      double sum = beta == 0.0f ? 0.0 : double{beta} * before[at(i, ldc, j)], scale = std::abs(sum);
      for (std::int64_t l = 0; l < k; ++l) {
        const double term = double{ta ? a[at(l, lda, i)] : a[at(i, lda, l)]} *
                            (tb ? b[at(j, ldb, l)] : b[at(l, ldb, j)]);
        sum += term;
        scale += std::abs(term);
      }
      const double bound = 6e-8 * (2 + std::sqrt(static_cast<double>(k))) * scale + 1e-30;
      if (std::abs(c[at(i, ldc, j)] - sum) > bound && ++shown < 5)
        ADD_FAILURE() << "m,n,k " << m << ',' << n << ',' << k << " at " << i << ',' << j << ": "
                      << c[at(i, ldc, j)] << " not " << sum;
    }
}

const std::int64_t sizes[] = {1, 3, 31, 33, 257};

// Tests gemm() with odd sizes and leading dimensions, all transpositions and both values of beta.
void expect_every_form(const ProductMethod* library) {
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const Cpu cpu{&pool, library};
    for (std::int64_t m : sizes)
      for (std::int64_t n : sizes)
        for (std::int64_t k : {std::int64_t{1}, std::int64_t{33}, std::int64_t{400}})
          for (int form = 0; form < 4; ++form) {
            const bool ta = form & 1, tb = form & 2;
            const std::int64_t lda = (ta ? m : k) + 2, ldb = (tb ? k : n) + 1, ldc = n + 3;
            const Floats a = random_matrix(ta ? k : m, ta ? m : k, lda, 1),
                         b = random_matrix(tb ? n : k, tb ? k : n, ldb, 2);
            const Floats before = random_matrix(m, n, ldc, 3);
            const float beta = (m + n + k) % 3 == 0 ? 0.0f : 1.0f;
            Floats c = before;
            gemm(cpu, ta, tb, m, n, k, a.data(), lda, b.data(), ldb, beta, c.data(), ldc);
            expect_product(ta, tb, m, n, k, a, lda, b, ldb, beta, before, c, ldc);
          }
  }
}

TEST(Gemm, EqualsDoublePrecisionInEveryForm) {
  expect_every_form(nullptr);
}

// Panel by panel (multiply_by_panels): some rows of tiles and a B that is too large to be read in
// place, or a transposed A; two stretches of k and a last panel that is not whole.
TEST(Gemm, FewRowsAndALargeBEqualDoublePrecision) {
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    const Cpu cpu{&pool, nullptr};
    for (const bool ta : {false, true})
      for (const std::int64_t n : {std::int64_t{1024}, std::int64_t{1301}}) {
        const std::int64_t m = 75, k = 411, lda = (ta ? m : k) + 2, ldb = n, ldc = n + 3;
        const Floats a = random_matrix(ta ? k : m, ta ? m : k, lda, 1),
                     b = random_floats(k * ldb, 2);
        const Floats before = random_matrix(m, n, ldc, 3);
        const float beta = n == 1024 ? 0.0f : 1.0f;
        Floats c = before;
        gemm(cpu, ta, false, m, n, k, a.data(), lda, b.data(), ldb, beta, c.data(), ldc);
        expect_product(ta, false, m, n, k, a, lda, b, ldb, beta, before, c, ldc);
      }
  }
}

TEST(Gemm, TheLibraryEqualsDoublePrecisionInEveryForm) {
  std::string why;
  const ProductMethod* const library = ProductMethod::one_dnn(&why);
  if (!library) GTEST_SKIP() << why;
  EXPECT_TRUE(library->name().starts_with("oneDNN ")) << library->name();
  expect_every_form(library);
}

TEST(Gemm, TheBitsDependNeitherOnTheThreadsNorOnPacking) {
  const std::int64_t n = 333, k = 777;
  for (std::int64_t m : {5, 29, 150})
    for (int form = 0; form < 4; ++form) {
      const bool ta = form & 1, tb = form & 2;
      const Floats a = random_floats(m * k, 13), b = random_floats(k * n, 14);
      const Floats rows = op(ta, m, k, a);
      Floats reference(static_cast<std::size_t>(m * n));
      ThreadPool one(1);
      Floats packed(static_cast<std::size_t>(packed_size(k, n)));
      pack({&one}, tb, k, n, b.data(), tb ? k : n, packed.data());
      gemm_packed({&one}, m, n, k, rows.data(), k, packed.data(), false, reference.data(), n);
      for (int threads : {1, 2, 3, 5}) {
        ThreadPool pool(threads);
        Floats c(reference.size());
        gemm({&pool}, ta, tb, m, n, k, a.data(), ta ? m : k, b.data(), tb ? k : n, 0.0f, c.data(),
             n);
        ASSERT_EQ(c, reference) << m << " rows, form " << form << ", " << threads << " threads";
      }
    }
}

// A transposed A is copied in two groups of rows, each of which meets two blocks of B.
TEST(Gemm, ManyColumnsOfATransposedAGiveTheBitsOfPackedProducts) {
  const std::int64_t m = 2060, n = 1105, k = 160;
  const Floats a = random_floats(k * m, 15), b = random_floats(k * n, 16);
  const Floats rows = op(true, m, k, a);
  ThreadPool pool(1);
  Floats packed(static_cast<std::size_t>(packed_size(k, n)));
  pack({&pool}, false, k, n, b.data(), n, packed.data());
  Floats reference = random_floats(m * n, 17), c = reference;
  gemm_packed({&pool}, m, n, k, rows.data(), k, packed.data(), true, reference.data(), n);
  gemm({&pool}, true, false, m, n, k, a.data(), m, b.data(), n, 1.0f, c.data(), n);
  EXPECT_EQ(c, reference);
}

TEST(Gemm, BetaZeroIgnoresWhatWasThere) {
  ThreadPool pool(2);
  const Floats a = random_floats(33 * 7, 1), b = random_floats(7 * 33, 2);
  Floats c(33 * 33, NAN);
  gemm({&pool}, false, false, 33, 33, 7, a.data(), 7, b.data(), 33, 0.0f, c.data(), 33);
  expect_product(false, false, 33, 33, 7, a, 7, b, 33, 0.0f, Floats(33 * 33), c, 33);
}

TEST(Gemm, EmptyInnerDimensionGivesBetaC) {
  ThreadPool pool(2);
  Floats c(4, 3.0f);
  gemm({&pool}, false, false, 2, 2, 0, nullptr, 1, nullptr, 1, 1.0f, c.data(), 2);
  EXPECT_EQ(c, Floats(4, 3.0f));
  gemm({&pool}, false, false, 2, 2, 0, nullptr, 1, nullptr, 1, 0.0f, c.data(), 2);
  EXPECT_EQ(c, Floats(4, 0.0f));
}

TEST(Gemm, TakesBetaZeroOrOneOnly) {
  ThreadPool pool(1);
  float x = 2;
  EXPECT_THROW(gemm({&pool}, false, false, 1, 1, 1, &x, 1, &x, 1, 0.5f, &x, 1), Error);
}

TEST(GemmPacked, EqualsDoublePrecision) {
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const Cpu cpu{&pool};
    for (std::int64_t m : {1, 2, 3, 4, 5, 13, 14, 15, 31, 64})
      for (std::int64_t n : sizes)
        for (std::int64_t k : {1, 3, 256, 1030}) {
          const bool tb = (m + n) % 2 != 0, accumulate = (m + k) % 2 != 0;
          const std::int64_t lda = k + 1, ldb = tb ? k : n, ldc = n + 1;
          const Floats a = random_matrix(m, k, lda, 4), b = random_floats(n * k, 5),
                       before = random_matrix(m, n, ldc, 6);
          Floats packed(static_cast<std::size_t>(packed_size(k, n))), c = before;
          pack(cpu, tb, k, n, b.data(), ldb, packed.data());
          gemm_packed(cpu, m, n, k, a.data(), lda, packed.data(), accumulate, c.data(), ldc);
          expect_product(false, tb, m, n, k, a, lda, b, ldb, accumulate ? 1.0f : 0.0f, before, c,
                         ldc);
        }
  }
}

// Rows of A a multiple of 2 KB apart are copied, others are read where they are.
TEST(GemmPacked, TheBitsDoNotDependOnTheDistanceOfTheRows) {
  ThreadPool pool(2);
  const std::int64_t n = 77;
  for (std::int64_t m : {1, 5, 13, 14, 60})
    for (std::int64_t k : {3, 256, 700}) {
      const Floats b = random_floats(n * k, 5);
      Floats packed(static_cast<std::size_t>(packed_size(k, n)));
      pack({&pool}, false, k, n, b.data(), n, packed.data());
      Floats first;
      for (std::int64_t lda : {k, k + 1, std::int64_t{1024}}) {
        const Floats rows = random_floats(m * k, 4);
        Floats a(static_cast<std::size_t>((m - 1) * lda + k)), c(static_cast<std::size_t>(m * n));
        for (std::int64_t r = 0; r < m; ++r)
          std::copy_n(rows.begin() + r * k, k, a.begin() + r * lda);
        gemm_packed({&pool}, m, n, k, a.data(), lda, packed.data(), false, c.data(), n);
        expect_product(false, false, m, n, k, a, lda, b, n, 0.0f, c, c, n);
        if (lda == k) first = c;
        EXPECT_EQ(c, first);
      }
    }
}

TEST(GemmPacked, ARowDependsNeitherOnItsNeighborsNorOnTheThreads) {
  const std::int64_t rows = 67, n = 333, k = 777;
  const Floats a = random_floats(rows * k, 7), b = random_floats(k * n, 8),
               start = random_floats(rows * n, 9);
  ThreadPool one(1);
  Floats packed(static_cast<std::size_t>(packed_size(k, n))), reference = start;
  pack({&one}, false, k, n, b.data(), n, packed.data());
  for (std::int64_t r = 0; r < rows; ++r)
    gemm_packed_rows({&one}, 1, n, k, &a[at(r, k, 0)], k, packed.data(), true,
                     &reference[at(r, n, 0)], n);
  for (int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    for (std::int64_t m = 1; m <= rows; ++m) {
      const std::int64_t first = (m * 13) % (rows - m + 1);
      Floats c = start;
      gemm_packed({&pool}, m, n, k, &a[at(first, k, 0)], k, packed.data(), true,
                  &c[at(first, n, 0)], n);
      const std::size_t bytes = static_cast<std::size_t>(m * n) * sizeof(float);
      ASSERT_EQ(std::memcmp(&c[at(first, n, 0)], &reference[at(first, n, 0)], bytes), 0)
          << m << " rows, " << threads << " threads";
    }
  }
}

TEST(GemmPacked, UnpackColumnReadsTheColumnBack) {
  ThreadPool pool(2);
  for (std::int64_t n : sizes) {
    const std::int64_t k = 33;
    const Floats b = random_floats(n * k, 12);
    Floats packed(static_cast<std::size_t>(packed_size(k, n))), out(static_cast<std::size_t>(k));
    pack({&pool}, true, k, n, b.data(), k, packed.data());
    for (std::int64_t j = 0; j < n; ++j) {
      unpack_column(k, j, packed.data(), out.data());
      ASSERT_EQ(
          std::memcmp(out.data(), &b[at(j, k, 0)], static_cast<std::size_t>(k) * sizeof(float)), 0);
    }
  }
}

}  // namespace
}  // namespace nmt::kernels
