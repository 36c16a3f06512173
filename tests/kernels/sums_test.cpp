#include "kernels/sums.h"

#include "core/threads/thread_pool.h"
#include "kernels/products/gemm.h"
#include "kernels/products/gemm_batched.h"
#include "kernels/products/product_method.h"
#include "tests/kernels/random_floats.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

// The order that sums.h states, one addition after the other.
float sum_in_stated_order(const Floats& terms) {
  float partial[32] = {};
  for (std::size_t i = 0; i < terms.size(); ++i) partial[i % 32] += terms[i];
  for (int half = 16; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) partial[l] += partial[l + half];
  return partial[0];
}

TEST(Sums, AddInTheStatedOrder) {
  for (std::int64_t n = 0; n < 200; ++n) {
    const Floats x = random_floats(n, 1 + n), y = random_floats(n, 1000 + n);
    Floats products = x;
    for (std::size_t i = 0; i < x.size(); ++i) products[i] *= y[i];
    ASSERT_EQ(sum_of(n, x.data()), sum_in_stated_order(x)) << n;
    ASSERT_EQ(dot(n, x.data(), y.data()), sum_in_stated_order(products)) << n;
  }
}

TEST(Sums, LesserTakesTheSecondOfTwoWhereOneIsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(lesser(1.0f, nan)));
  EXPECT_EQ(lesser(nan, 1.0f), 1.0f);
  float out[lanes];
  store(out, lesser(broadcast(1.0f), broadcast(nan)));
  EXPECT_TRUE(std::isnan(out[0]));
  store(out, lesser(broadcast(nan), broadcast(1.0f)));
  EXPECT_EQ(out[0], 1.0f);
}

// One multiplication and one addition after the other, k ascending.
Floats product_by_roundings(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                            std::int64_t lda, const float* b, std::int64_t ldb, bool transpose_b,
                            Floats c) {
  for (std::int64_t r = 0; r < m; ++r)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < k; ++i) {
        const volatile float term =
            a[r * lda + i] * (transpose_b ? b[j * ldb + i] : b[i * ldb + j]);
        c[r * n + j] += term;
      }
  return c;
}

TEST(SeparateProducts, RoundEachMultiplicationAndEachAddition) {
  for (const int threads : {1, 2}) {
    ThreadPool pool(threads);
    const Cpu cpu{&pool, &ProductMethod::separate()};
    for (const std::int64_t m : {1, 4, 5, 17})
      for (const std::int64_t n : {1, 8, 33, 65})
        for (const std::int64_t k : {1, 256, 300}) {
          const Floats a = random_floats(m * k, 1), b = random_floats(k * n, 2),
                       before = random_floats(m * n, 3);
          for (const bool transpose : {false, true})
            for (const float beta : {0.0f, 1.0f}) {
              Floats c = before;
              gemm(cpu, false, transpose, m, n, k, a.data(), k, b.data(), transpose ? k : n, beta,
                   c.data(), n);
              ASSERT_EQ(
                  c, product_by_roundings(m, n, k, a.data(), k, b.data(), transpose ? k : n,
                                          transpose, beta == 0.0f ? Floats(before.size()) : before))
                  << m << " " << n << " " << k << " " << transpose << " " << beta;
            }
          Floats packed(static_cast<std::size_t>(packed_size(k, n))), c(before.size());
          pack(cpu, false, k, n, b.data(), n, packed.data());
          gemm_packed(cpu, m, n, k, a.data(), k, packed.data(), false, c.data(), n);
          ASSERT_EQ(c, product_by_roundings(m, n, k, a.data(), k, b.data(), n, false,
                                            Floats(before.size())));
        }
  }
}

TEST(SeparateProducts, OfBlocksAreThoseOfEachBlock) {
  ThreadPool pool(2);
  const Cpu cpu{&pool, &ProductMethod::separate()};
  const BlockDiagonal d{3, 2, 20, 33, 70};
  const std::int64_t rows = 5, in = d.groups * d.k, out = d.groups * d.planes * d.n;
  const Floats x = random_floats(rows * in, 1), w = random_floats(in * d.ld, 2);
  Floats packed(static_cast<std::size_t>(packed_batched_size(d.product(), d.k, d.n)));
  pack_batched(cpu, d.product(), false, d.k, d.n, w.data(), d.ld, packed.data());
  for (const bool in_one_call : {true, false}) {
    Floats y(static_cast<std::size_t>(rows * out));
    if (in_one_call)
      gemm_packed_batched(cpu, d.product(), rows, d.n, d.k, x.data(), in, packed.data(), false,
                          y.data(), out);
    else
      gemm_packed_batched_rows(cpu, d.product(), rows, d.n, d.k, x.data(), in, packed.data(), false,
                               y.data(), out);
    for (std::int64_t g = 0; g < d.groups; ++g)
      for (std::int64_t p = 0; p < d.planes; ++p) {
        const Floats block =
            product_by_roundings(rows, d.n, d.k, &x[g * d.k], in, &w[g * d.k * d.ld + p * d.n],
                                 d.ld, false, Floats(static_cast<std::size_t>(rows * d.n)));
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t j = 0; j < d.n; ++j)
            ASSERT_EQ(y[r * out + (p * d.groups + g) * d.n + j], block[r * d.n + j]);
      }
  }
}

}  // namespace
}  // namespace nmt::kernels
