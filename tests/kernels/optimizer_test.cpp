#include "kernels/optimizer.h"

#include "core/threads/thread_pool.h"
#include "tests/kernels/random_floats.h"

#include <cmath>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

constexpr float half = 0.5f;

struct Parameters {
  std::vector<Floats> value, gradient, first, second, average;
  std::vector<OptimizerSlice> slices;
  explicit Parameters(bool averages) {
    std::uint64_t seed = 1;
    for (std::int64_t n : {1, 3, 31, 0, 33, 257, 40001, 8192}) {
      value.push_back(random_floats(n, seed++));
      gradient.push_back(random_floats(n, seed++));
      first.push_back(random_floats(n, seed++));
      second.push_back(random_floats(n, seed++, 1.0f));
      average.push_back(random_floats(n, seed++));
    }
    for (std::size_t i = 0; i < value.size(); ++i)
      slices.push_back({static_cast<std::int64_t>(value[i].size()), value[i].data(),
                        gradient[i].data(), first[i].data(), second[i].data(),
                        averages ? average[i].data() : nullptr});
  }
  std::int64_t count() const { return static_cast<std::int64_t>(slices.size()); }
};

TEST(Optimizer, AdamEqualsDoublePrecision) {
  AdamStep step;
  step.rate = 0.01f;
  step.epsilon = 1e-3f;
  step.beta1 = 0.8f;
  step.beta2 = 0.98f;
  step.gradient_factor = &half;
  for (float decay : {0.0f, 0.1f})
    for (float smoothing : {0.0f, 0.05f})
      for (int threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        step.decay = decay;
        step.smoothing = smoothing;
        const Parameters before(true);
        Parameters after(true);
        adam({&pool}, after.slices.data(), after.count(), step);
        for (std::size_t s = 0; s < before.value.size(); ++s)
          for (std::size_t i = 0; i < before.value[s].size(); ++i) {
            // Kingma & Ba 2015, algorithm 1; the decoupled decay of Loshchilov & Hutter 2019,
            // algorithm 2, line 12.
            const double g = before.gradient[s][i] * 0.5, w = before.value[s][i];
            const double m = 0.8 * before.first[s][i] + 0.2 * g,
                         v = 0.98 * before.second[s][i] + 0.02 * g * g;
            const double value = w - 0.01 * m / (std::sqrt(v) + 1e-3) - decay * w;
            const double average = before.average[s][i];
            ASSERT_NEAR(after.first[s][i], m, 3e-7);
            ASSERT_NEAR(after.second[s][i], v, 3e-7);
            // Where v is tiny the quotient is ill-conditioned in the rounded inputs.
            ASSERT_NEAR(after.value[s][i], value, 5e-7 + 1e-5 * std::abs(value - w));
            ASSERT_NEAR(after.average[s][i], average + smoothing * (after.value[s][i] - average),
                        3e-7);
            ASSERT_EQ(after.gradient[s][i], 0.0f);
          }
      }
}

// One step of every weight against `reference(w, g, first, second)` in double, with and without an
// average.
template <class Step, class Kernel, class Reference>
void compare(Step step, Kernel kernel, Reference reference) {
  step.rate = 0.3f;
  step.gradient_factor = &half;
  for (float smoothing : {0.0f, 0.05f})
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      step.smoothing = smoothing;
      Parameters after(true);
      if (!std::is_same_v<Step, MomentumStep>)  // means of squares
        for (auto* states : {&after.first, &after.second})
          for (Floats& all : *states)
            for (float& x : all) x = std::abs(x);
      const Parameters start = after;  // its slices are not used
      kernel(Cpu{&pool}, after.slices.data(), after.count(), step);
      for (std::size_t s = 0; s < start.value.size(); ++s)
        for (std::size_t i = 0; i < start.value[s].size(); ++i) {
          double w = start.value[s][i], first = start.first[s][i], second = start.second[s][i];
          reference(w, 0.5 * start.gradient[s][i], first, second);
          const double average =
              start.average[s][i] + double{smoothing} * (after.value[s][i] - start.average[s][i]);
          ASSERT_NEAR(after.value[s][i], w, 5e-7 + 2e-6 * std::abs(w));
          ASSERT_NEAR(after.first[s][i], first, 5e-7 * (1 + std::abs(first)));
          ASSERT_NEAR(after.second[s][i], second, 5e-7 * (1 + std::abs(second)));
          ASSERT_NEAR(after.average[s][i], average, 5e-7);
          ASSERT_EQ(after.gradient[s][i], 0.0f);
        }
    }
}

// Zeiler 2012, algorithm 1.
TEST(Optimizer, AdadeltaEqualsDoublePrecision) {
  AdadeltaStep step;
  step.rho = 0.9f;
  step.epsilon = 1e-3f;
  compare(
      step, [](const auto&... all) { adadelta(all...); },
      [](double& w, double g, double& gradients, double& steps) {
        gradients = 0.9 * gradients + 0.1 * g * g;
        const double dx = -std::sqrt(steps + 1e-3) / std::sqrt(gradients + 1e-3) * g;
        steps = 0.9 * steps + 0.1 * dx * dx;
        w += 0.3 * dx;
      });
}

// Duchi et al. 2011, figure 1, diagonal.
TEST(Optimizer, AdagradEqualsDoublePrecision) {
  AdagradStep step;
  step.epsilon = 1e-2f;
  compare(
      step, [](const auto&... all) { adagrad(all...); },
      [](double& w, double g, double& sum, double&) {
        sum += g * g;
        w -= 0.3 * g / (1e-2 + std::sqrt(sum));
      });
}

TEST(Optimizer, SgdEqualsDoublePrecision) {
  compare(
      SgdStep{}, [](const auto&... all) { sgd(all...); },
      [](double& w, double g, double&, double&) { w -= 0.3 * g; });
}

// Polyak 1964, equation 9, with the velocity v = (w before - w) / rate.
TEST(Optimizer, MomentumEqualsDoublePrecision) {
  MomentumStep step;
  step.momentum = 0.7f;
  compare(
      step, [](const auto&... all) { momentum(all...); },
      [](double& w, double g, double& v, double&) {
        v = 0.7 * v + g;
        w -= 0.3 * v;
      });
}

TEST(Optimizer, RulesWithoutStateNeedNone) {
  ThreadPool pool(2);
  Parameters p(true);
  for (OptimizerSlice& slice : p.slices) slice.first = slice.second = nullptr;
  SgdStep step;
  step.rate = 1;
  sgd({&pool}, p.slices.data(), p.count(), step);
  const Parameters before(true);
  EXPECT_EQ(p.value[6][77], before.value[6][77] - before.gradient[6][77]);
}

TEST(Optimizer, NoAverageWanted) {
  ThreadPool pool(2);
  AdamStep step;
  step.rate = 0.01f;
  step.epsilon = 1e-8f;
  step.smoothing = 0.5f;
  Parameters with(true), without(false);
  adam({&pool}, with.slices.data(), with.count(), step);
  adam({&pool}, without.slices.data(), without.count(), step);
  EXPECT_EQ(with.value, without.value);
  EXPECT_EQ(without.average, Parameters(false).average);
}

double norm_squared(const Cpu& cpu, const OptimizerSlice* slices, std::int64_t count) {
  double sum = -1;
  gradient_norm_squared(cpu, slices, count, &sum);
  return sum;
}

TEST(Optimizer, TheResultDoesNotDependOnTheThreads) {
  AdamStep step;
  step.rate = 0.01f;
  step.epsilon = 1e-8f;
  Parameters reference(false);
  ThreadPool one(1);
  const double norm = norm_squared({&one}, reference.slices.data(), reference.count());
  adam({&one}, reference.slices.data(), reference.count(), step);
  for (int threads : {2, 3, 4}) {
    ThreadPool pool(threads);
    Parameters p(false);
    EXPECT_EQ(norm_squared({&pool}, p.slices.data(), p.count()), norm);
    adam({&pool}, p.slices.data(), p.count(), step);
    EXPECT_EQ(p.value, reference.value);
    EXPECT_EQ(p.first, reference.first);
    EXPECT_EQ(p.second, reference.second);
  }
}

TEST(Optimizer, NormOfAllGradients) {
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const Parameters p(false);
    for (std::int64_t count : {std::int64_t{0}, std::int64_t{3}, p.count()}) {
      double want = 0;
      for (std::int64_t s = 0; s < count; ++s)
        for (float g : p.gradient[static_cast<std::size_t>(s)]) want += double{g} * g;
      EXPECT_NEAR(norm_squared({&pool}, p.slices.data(), count), want, 1e-12 * want);
    }
  }
}

TEST(Optimizer, ClippingLimitsTheNorm) {
  const auto factor = [](double squares, double share, double limit) {
    float result = -1;
    clip(Cpu(), &squares, share, limit, &result);
    return result;
  };
  EXPECT_EQ(factor(36, 0.25, 0), 0.25f);       // without a limit
  EXPECT_EQ(factor(36, 0.25, 2), 0.25f);       // norm 1.5
  EXPECT_EQ(factor(36, 0.25, 0.5), 0.5f / 6);  // 0.5 afterwards
  EXPECT_EQ(factor(0, 0.25, 0.5), 0.25f);
  for (const double bad : {double{NAN}, double{INFINITY}})
    for (const double limit : {0.0, 1.0}) EXPECT_TRUE(std::isnan(factor(bad, 0.25, limit)));
}

TEST(Optimizer, ANonFiniteGradientChangesNothing) {
  ThreadPool pool(2);
  for (float bad : {NAN, INFINITY}) {
    Parameters p(true);
    p.gradient[6][12345] = bad;
    const double squares = norm_squared({&pool}, p.slices.data(), p.count());
    EXPECT_FALSE(std::isfinite(squares));
    float factor = 1;
    clip({&pool}, &squares, 1, 1, &factor);
    AdamStep step;
    step.rate = 0.01f;
    step.epsilon = 1e-8f;
    step.smoothing = 0.5f;
    step.gradient_factor = &factor;
    adam({&pool}, p.slices.data(), p.count(), step);
    const Parameters before(true);
    EXPECT_EQ(p.value, before.value);
    EXPECT_EQ(p.first, before.first);
    EXPECT_EQ(p.second, before.second);
    EXPECT_EQ(p.average, before.average);
    for (const Floats& gradient : p.gradient) EXPECT_EQ(gradient, Floats(gradient.size(), 0.0f));
  }
}

}  // namespace
}  // namespace nmt::kernels
