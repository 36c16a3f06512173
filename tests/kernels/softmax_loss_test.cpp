#include "kernels/softmax_loss.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "kernels/decoding/top_k.h"
#include "tests/kernels/reference_values.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

using Doubles = std::vector<double>;

struct Problem {
  std::int64_t rows, width, vocabulary;
  float smoothing, scale;
  bool with_bias;
  Floats x, table, bias;
  test::Guarded<std::int32_t> target;
  Problem(std::int64_t r, std::int64_t e, std::int64_t v, float s, float factor, bool b)
      : rows(r),
        width(e),
        vocabulary(v),
        smoothing(s),
        scale(factor),
        with_bias(b),
        x(random_floats(r * e, 1)),
        table(random_floats(v * e, 2)),
        bias(random_floats(v, 3)) {
    Rng rng(4);
    for (std::int64_t i = 0; i < r; ++i)
      target.push_back(static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(v))));
    target.shrink_to_fit();
  }
};

struct Answer {
  Floats dx, dtable, dbias;
  double cross_entropy = 0, smoothed = 0;  // added to
};

// `beta`: of the gradient of the table, which is 1 before.
Answer run(const Problem& p, int threads, bool gradients, float beta = 1.0f) {
  ThreadPool pool(threads);
  const Cpu cpu{&pool};
  Answer a{Floats(p.x.size(), NAN), Floats(p.table.size(), beta == 0.0f ? NAN : 1.0f),
           Floats(p.bias.size(), 2.0f)};
  Floats scratch(static_cast<std::size_t>(softmax_loss_scratch(cpu, p.rows, p.width, p.vocabulary)),
                 NAN);
  SoftmaxLoss loss;
  loss.rows = p.rows;
  loss.width = p.width;
  loss.vocabulary = p.vocabulary;
  loss.x = p.x.data();
  loss.table = p.table.data();
  loss.bias = p.with_bias ? p.bias.data() : nullptr;
  loss.target = p.target.data();
  loss.smoothing = p.smoothing;
  loss.scale = p.scale;
  loss.dx = gradients ? a.dx.data() : nullptr;
  loss.dtable = gradients ? a.dtable.data() : nullptr;
  loss.dbias = gradients && p.with_bias ? a.dbias.data() : nullptr;
  loss.cross_entropy = &a.cross_entropy;
  loss.smoothed = &a.smoothed;
  loss.scratch = scratch.data();
  loss.dtable_beta = beta;
  softmax_loss(cpu, loss);
  return a;
}

// Checks loss and gradients against the definition in double: KL(q || softmax(x table^T + bias)).
void expect_right(const Problem& p, const Answer& got, bool gradients) {
  Doubles dx(p.x.size()), dtable(p.table.size(), 1.0), dbias(p.bias.size(), 2.0),
      logits(p.bias.size());
  double cross_entropy = 0, smoothed = 0;
  const double share = static_cast<double>(p.smoothing) / static_cast<double>(p.vocabulary);
  for (std::int64_t r = 0; r < p.rows; ++r) {
    double sum = 0;
    for (std::int64_t v = 0; v < p.vocabulary; ++v) {
      double& logit = logits[at(0, 0, v)];
      logit = p.with_bias ? p.bias[at(0, 0, v)] : 0.0;
      for (std::int64_t e = 0; e < p.width; ++e)
        logit += double{p.x[at(r, p.width, e)]} * p.table[at(v, p.width, e)];
      sum += std::exp(logit);
    }
    for (std::int64_t v = 0; v < p.vocabulary; ++v) {
      const double log_p = logits[at(0, 0, v)] - std::log(sum);
      const double q =
          share + (v == p.target[at(0, 0, r)] ? 1.0 - static_cast<double>(p.smoothing) : 0.0);
      if (v == p.target[at(0, 0, r)]) cross_entropy -= log_p;
      if (q > 0) smoothed += q * (std::log(q) - log_p);
      const double d = static_cast<double>(p.scale) * (std::exp(log_p) - q);
      dbias[at(0, 0, v)] += d;
      for (std::int64_t e = 0; e < p.width; ++e) {
        dx[at(r, p.width, e)] += d * p.table[at(v, p.width, e)];
        dtable[at(v, p.width, e)] += d * p.x[at(r, p.width, e)];
      }
    }
  }
  EXPECT_NEAR(got.cross_entropy, cross_entropy, 1e-6 * (1 + std::abs(cross_entropy)));
  EXPECT_NEAR(got.smoothed, smoothed, 1e-6 * (1 + std::abs(cross_entropy)));
  if (!gradients) return;
  for (std::size_t i = 0; i < dx.size(); ++i) ASSERT_NEAR(got.dx[i], dx[i], 1e-5) << "dx " << i;
  for (std::size_t i = 0; i < dtable.size(); ++i)
    ASSERT_NEAR(got.dtable[i], dtable[i], 2e-5) << "dtable " << i;
  for (std::size_t i = 0; p.with_bias && i < dbias.size(); ++i)
    ASSERT_NEAR(got.dbias[i], dbias[i], 2e-5) << "dbias " << i;
}

TEST(SoftmaxLoss, EqualsDoublePrecision) {
  for (std::int64_t rows : {1, 3, 31, 257})
    for (std::int64_t width : {1, 33})
      for (std::int64_t vocabulary : {1, 3, 33, 257})
        for (int form = 0; form < 4; ++form) {
          const Problem p(rows, width, vocabulary, form & 1 ? 0.1f : 0.0f, form & 1 ? 0.25f : 1.0f,
                          form & 2);
          for (int threads : {1, 2, 3}) {
            expect_right(p, run(p, threads, true), true);
            expect_right(p, run(p, threads, false), false);
            Answer overwritten = run(p, threads, true, 0.0f);
            for (float& slope : overwritten.dtable) slope += 1.0f;
            expect_right(p, overwritten, true);
          }
        }
}

TEST(SoftmaxLoss, SeveralChunksWithoutDependenceOnTheThreads) {
  // More rows than two chunks (of at most 2,048), and a vocabulary whose rows are 4 KB apart.
  const Problem p(4200, 9, 1024, 0.1f, 0.5f, true);
  const Answer one = run(p, 1, true);
  expect_right(p, one, true);
  for (int threads : {2, 3}) {
    const Answer more = run(p, threads, true);
    EXPECT_EQ(more.dx, one.dx);
    EXPECT_EQ(more.dtable, one.dtable);
    EXPECT_EQ(more.dbias, one.dbias);
    EXPECT_EQ(more.cross_entropy, one.cross_entropy);
    EXPECT_EQ(more.smoothed, one.smoothed);
  }
}

TEST(SoftmaxLoss, NoRowsIsNoLoss) {
  const Problem p(0, 5, 7, 0.1f, 1.0f, false);
  const Answer a = run(p, 2, true);
  EXPECT_EQ(a.cross_entropy, 0.0);
  EXPECT_EQ(a.smoothed, 0.0);
  EXPECT_EQ(a.dtable, Floats(p.table.size(), 1.0f));
}

TEST(SoftmaxLoss, GreatLogitsStayFinite) {
  Problem p(3, 1, 33, 0.0f, 1.0f, false);
  p.x = {300.0f, -300.0f, 0.0f};
  const Answer a = run(p, 1, true);
  expect_right(p, a, false);
  for (float d : a.dtable) EXPECT_TRUE(std::isfinite(d));
  for (float d : a.dx) EXPECT_TRUE(std::isfinite(d));
}

TEST(SoftmaxLoss, ANanIsSeenAndAWrongTargetRefused) {
  Problem p(3, 5, 33, 0.1f, 1.0f, false);
  p.x[7] = NAN;
  const Answer a = run(p, 1, true);
  EXPECT_TRUE(std::isnan(a.cross_entropy));
  EXPECT_TRUE(std::isnan(a.smoothed));
  EXPECT_TRUE(std::isnan(a.dx[5]));
  EXPECT_FALSE(std::isnan(a.dx[0]));
  p.target[1] = 33;
  EXPECT_THROW(run(p, 1, true), Error);
}

TEST(LogSumExp, EqualsDoublePrecisionRowByRow) {
  for (std::int64_t rows : {1, 3, 33})
    for (std::int64_t vocabulary : {1, 3, 31, 257, 8000}) {
      Floats logits = random_floats(rows * vocabulary, 5);
      for (float& x : logits) x = 20 * x + 100;
      Floats reference(static_cast<std::size_t>(rows));
      ThreadPool one(1);
      for (std::int64_t r = 0; r < rows; ++r)
        log_sum_exp({&one}, 1, vocabulary, &logits[at(r, vocabulary, 0)], &reference[at(0, 0, r)]);
      for (std::int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (std::int64_t v = 0; v < vocabulary; ++v)
          sum += std::exp(double{logits[at(r, vocabulary, v)]} - 100);
        ASSERT_NEAR(reference[at(0, 0, r)], 100 + std::log(sum), 2e-5);
      }
      for (int threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        Floats out(reference.size());
        log_sum_exp({&pool}, rows, vocabulary, logits.data(), out.data());
        ASSERT_EQ(out, reference);
      }
    }
}

TEST(LogSumExp, NanStaysNan) {
  ThreadPool pool(1);
  for (std::size_t place : {0u, 5u, 32u}) {
    Floats logits(33, 1.0f);
    logits[place] = NAN;
    float out = 0;
    log_sum_exp({&pool}, 1, 33, logits.data(), &out);
    EXPECT_TRUE(std::isnan(out)) << place;
  }
}

TEST(FinishLogits, AddsTheBiasAndKnowsTheMaxima) {
  for (std::int64_t vocabulary : {1, 3, 127, 128, 129, 1000})
    for (int threads : {1, 3}) {
      const std::int64_t rows = 5, blocks = top_k_blocks(vocabulary);
      const Floats bias = random_floats(vocabulary, 6);
      Floats logits = random_floats(rows * vocabulary, 5),
             maxima(static_cast<std::size_t>(rows * blocks)), out(rows);
      const std::int64_t nan = vocabulary - 1;
      logits[at(4, vocabulary, nan)] = NAN;  // in the last row
      const Floats before = logits;
      ThreadPool pool(threads);
      finish_logits({&pool}, rows, vocabulary, bias.data(), logits.data(), maxima.data(),
                    out.data());
      for (std::int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (std::int64_t v = 0; v < vocabulary; ++v) {
          const float value = before[at(r, vocabulary, v)] + bias[at(0, 0, v)];
          if (!std::isnan(value)) {
            ASSERT_EQ(logits[at(r, vocabulary, v)], value);
          }
          sum += std::exp(static_cast<double>(value));
        }
        if (r == 4)
          ASSERT_TRUE(std::isnan(out[at(0, 0, r)]));
        else
          ASSERT_NEAR(out[at(0, 0, r)], std::log(sum), 2e-6 * (1 + std::abs(std::log(sum))));
        for (std::int64_t b = 0; b < blocks; ++b) {
          const float* first = &logits[at(r, vocabulary, b * top_k_block)];
          const float maximum = maxima[at(r, blocks, b)];
          if (r == 4 && b == nan / top_k_block)
            ASSERT_TRUE(std::isnan(maximum));
          else
            ASSERT_EQ(maximum,
                      *std::max_element(
                          first, first + std::min(top_k_block, vocabulary - b * top_k_block)));
        }
      }
      for (const int k : {1, 4}) {
        Floats best(at(rows, k, 0)), known(at(rows, k, 0));
        std::vector<std::int32_t> columns(best.size()), known_columns(best.size());
        const std::vector<std::int32_t> skip{0};
        top_k({&pool}, rows - 1, vocabulary, logits.data(), k, skip, best.data(), columns.data());
        top_k_of_blocks({&pool}, rows - 1, vocabulary, logits.data(), maxima.data(), k, skip,
                        known.data(), known_columns.data());
        ASSERT_EQ(best, known);
        ASSERT_EQ(columns, known_columns);
        top_k_of_blocks({&pool}, 1, vocabulary, &logits[at(4, vocabulary, 0)],
                        &maxima[at(4, blocks, 0)], k, skip, known.data(), known_columns.data());
        ASSERT_TRUE(std::isnan(known[0]));
        ASSERT_EQ(known_columns[0], nan);
      }
    }
}

}  // namespace
}  // namespace nmt::kernels
