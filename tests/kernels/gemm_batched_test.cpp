#include "kernels/products/gemm_batched.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "kernels/products/gemm.h"
#include "tests/kernels/random_floats.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

// Expands a block-diagonal matrix to the dense [K*k, P*K*n], in double.
std::vector<double> expand(const BlockDiagonal& d, const Floats& w) {
  const std::int64_t wide = d.planes * d.groups * d.n;
  std::vector<double> dense(static_cast<std::size_t>(d.groups * d.k * wide));
  for (std::int64_t g = 0; g < d.groups; ++g)
    for (std::int64_t i = 0; i < d.k; ++i)
      for (std::int64_t p = 0; p < d.planes; ++p)
        for (std::int64_t j = 0; j < d.n; ++j)
          dense[(g * d.k + i) * wide + (p * d.groups + g) * d.n + j] =
              w[(g * d.k + i) * d.ld + p * d.n + j];
  return dense;
}

void expect_close(double expected, float actual, double scale, std::int64_t k, const char* what) {
  EXPECT_NEAR(actual, expected, 6e-8 * (2 + std::sqrt(static_cast<double>(k))) * scale + 1e-30)
      << what;
}

struct Case {
  BlockDiagonal d;
  std::int64_t rows;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (std::int64_t groups : {1, 2, 3, 4, 8})
    for (std::int64_t planes : {1, 2, 3})
      for (std::int64_t k : {1, 7, 33})
        for (std::int64_t n : {5, 32})
          for (std::int64_t rows : {1, 4, 37})
            all.push_back({{groups, planes, k, n, planes * n + (k == 7 ? 3 : 0)}, rows});
  all.push_back({{4, 3, 300, 40, 120}, 200});
  return all;
}

TEST(GemmBatched, EqualsTheDenseProductInDouble) {
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const Cpu cpu{&pool};
    for (const auto& [d, rows] : cases()) {
      const std::int64_t in = d.groups * d.k, out = d.planes * d.groups * d.n;
      const float beta = (rows + d.k + d.groups) % 2 == 0 ? 0.0f : 1.0f;
      const Floats x = random_floats(rows * in, 1), w = random_floats(in * d.ld, 2),
                   dy = random_floats(rows * out, 3);
      const Floats y0 = random_floats(rows * out, 4), dx0 = random_floats(rows * in, 5),
                   dw0 = random_floats(in * d.ld, 6);
      Floats y = y0, dx = dx0, dw = dw0;
      gemm_batched(cpu, d.product(), false, false, rows, d.n, d.k, x.data(), in, w.data(), d.ld,
                   beta, y.data(), out);
      gemm_batched(cpu, d.input_gradient(), false, true, rows, d.k, d.n, dy.data(), out, w.data(),
                   d.ld, beta, dx.data(), in);
      gemm_batched(cpu, d.weight_gradient(), true, false, d.k, d.n, rows, x.data(), in, dy.data(),
                   out, beta, dw.data(), d.ld);
      const std::vector<double> dense = expand(d, w);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t j = 0; j < out; ++j) {
          double sum = beta * y0[r * out + j], scale = std::abs(sum);
          for (std::int64_t i = 0; i < in; ++i)
            sum += x[r * in + i] * dense[i * out + j],
                scale += std::abs(x[r * in + i] * dense[i * out + j]);
          expect_close(sum, y[r * out + j], scale, d.k, "Y");
        }
        for (std::int64_t i = 0; i < in; ++i) {
          double sum = beta * dx0[r * in + i], scale = std::abs(sum);
          for (std::int64_t j = 0; j < out; ++j)
            sum += dy[r * out + j] * dense[i * out + j],
                scale += std::abs(dy[r * out + j] * dense[i * out + j]);
          expect_close(sum, dx[r * in + i], scale, d.planes * d.n, "dX");
        }
      }
      for (std::int64_t i = 0; i < in; ++i)
        for (std::int64_t c = 0; c < d.ld; ++c) {
          if (c >= d.planes * d.n) {
            ASSERT_EQ(dw[i * d.ld + c], dw0[i * d.ld + c]) << "written past the planes";
            continue;
          }
          const std::int64_t j = (c / d.n * d.groups + i / d.k) * d.n + c % d.n;
          double sum = beta * dw0[i * d.ld + c], scale = std::abs(sum);
          for (std::int64_t r = 0; r < rows; ++r)
            sum += double{x[r * in + i]} * dy[r * out + j],
                scale += std::abs(x[r * in + i] * dy[r * out + j]);
          expect_close(sum, dw[i * d.ld + c], scale, rows, "dW");
        }
      ASSERT_FALSE(::testing::Test::HasFailure())
          << d.groups << " groups, " << d.planes << " planes of [" << d.k << ',' << d.n << "], "
          << rows << " rows, " << threads << " threads";
    }
  }
}

TEST(GemmBatched, TheBitsDependNeitherOnThreadsNorOnPackingNorOnTheOtherRows) {
  for (const auto& [d, rows] : cases()) {
    const std::int64_t in = d.groups * d.k, out = d.planes * d.groups * d.n;
    const Floats x = random_floats(rows * in, 1), w = random_floats(in * d.ld, 2),
                 dy = random_floats(rows * out, 3);
    Floats y(static_cast<std::size_t>(rows * out)), dx(static_cast<std::size_t>(rows * in));
    const GemmBatch forward = d.product(), back = d.input_gradient();
    ThreadPool one(1);
    gemm_batched({&one}, forward, false, false, rows, d.n, d.k, x.data(), in, w.data(), d.ld, 0.0f,
                 y.data(), out);
    gemm_batched({&one}, back, false, true, rows, d.k, d.n, dy.data(), out, w.data(), d.ld, 0.0f,
                 dx.data(), in);
    for (int threads : {1, 2, 3, 5}) {
      ThreadPool pool(threads);
      const Cpu cpu{&pool};
      Floats packed(static_cast<std::size_t>(packed_batched_size(forward, d.k, d.n)));
      Floats transposed(static_cast<std::size_t>(packed_batched_size(back, d.n, d.k)));
      pack_batched(cpu, forward, false, d.k, d.n, w.data(), d.ld, packed.data());
      pack_batched(cpu, back, true, d.n, d.k, w.data(), d.ld, transposed.data());
      Floats again(y.size(), NAN), again_dx(dx.size(), NAN);
      gemm_batched(cpu, forward, false, false, rows, d.n, d.k, x.data(), in, w.data(), d.ld, 0.0f,
                   again.data(), out);
      ASSERT_EQ(again, y) << threads << " threads";
      gemm_packed_batched(cpu, forward, rows, d.n, d.k, x.data(), in, packed.data(), false,
                          again.data(), out);
      ASSERT_EQ(again, y) << threads << " threads, packed";
      gemm_packed_batched(cpu, back, rows, d.k, d.n, dy.data(), out, transposed.data(), false,
                          again_dx.data(), in);
      ASSERT_EQ(again_dx, dx) << threads << " threads, packed";
      // Row by row, added to zeros.
      Floats rowwise(y.size()), rowwise_dx(dx.size());
      for (std::int64_t r = 0; r < rows; ++r) {
        gemm_packed_batched_rows(cpu, forward, 1, d.n, d.k, &x[r * in], in, packed.data(), true,
                                 &rowwise[r * out], out);
        gemm_packed_batched_rows(cpu, back, 1, d.k, d.n, &dy[r * out], out, transposed.data(), true,
                                 &rowwise_dx[r * in], in);
      }
      ASSERT_EQ(rowwise, y);
      ASSERT_EQ(rowwise_dx, dx);
    }
  }
}

TEST(GemmBatched, OneGroupIsThePlainProduct) {
  ThreadPool pool(2);
  const std::int64_t rows = 19, k = 65, n = 40;
  const Floats x = random_floats(rows * k, 1), w = random_floats(k * n, 2);
  Floats plain(static_cast<std::size_t>(rows * n)), batched(plain.size());
  gemm({&pool}, false, false, rows, n, k, x.data(), k, w.data(), n, 0.0f, plain.data(), n);
  const BlockDiagonal d{1, 1, k, n, n};
  gemm_batched({&pool}, d.product(), false, false, rows, n, k, x.data(), k, w.data(), n, 0.0f,
               batched.data(), n);
  EXPECT_EQ(batched, plain);
}

TEST(GemmBatched, TakesBetaZeroOrOneOnly) {
  ThreadPool pool(1);
  float x = 1;
  EXPECT_THROW(gemm_batched({&pool}, {}, false, false, 1, 1, 1, &x, 1, &x, 1, 0.5f, &x, 1), Error);
}

}  // namespace
}  // namespace nmt::kernels
