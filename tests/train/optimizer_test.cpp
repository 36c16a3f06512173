#include "train/optimization/optimizer.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"

#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include <gtest/gtest.h>

namespace nmt::train {
namespace {

// Adam written out as in Kingma & Ba 2015, algorithm 1, in double, with Loshchilov & Hutter's
// decoupled decay.
struct Reference {
  double beta1, beta2, epsilon, decay, clip, smoothing;
  std::vector<double> value, m, v, average;
  int t = 0;

  double step(const std::vector<double>& summed, double tokens, double rate) {
    std::vector<double> g = summed;
    double square = 0;
    for (double& x : g) x /= tokens, square += x * x;
    const double norm = std::sqrt(square);
    if (clip > 0 && norm > clip)
      for (double& x : g) x *= clip / norm;
    ++t;
    const double s = std::max(smoothing, 9.0 / (t + 9));
    for (std::size_t i = 0; i < g.size(); ++i) {
      m[i] = beta1 * m[i] + (1 - beta1) * g[i];
      v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
      const double m_hat = m[i] / (1 - std::pow(beta1, t)), v_hat = v[i] / (1 - std::pow(beta2, t));
      value[i] -= rate * (m_hat / (std::sqrt(v_hat) + epsilon) + decay * value[i]);
      average[i] += s * (value[i] - average[i]);
    }
    return norm;
  }
};

class OptimizerTest : public testing::Test {
 protected:
  OptimizerTest() {
    context.arena = &arena;
    context.cpu.pool = &pool;
    Rng rng(7);
    parameters.add(context, "a", {3, 5}, ParameterSet::Init::glorot, rng);
    parameters.add(context, "b", {7}, ParameterSet::Init::embedding, rng);
  }
  std::vector<double> flat(bool gradient) const {
    std::vector<double> all;
    for (const Parameter& p : parameters.all()) {
      const float* data = (gradient ? p.gradient : p.value).f32();
      all.insert(all.end(), data, data + p.shape.elements());
    }
    return all;
  }
  void add_gradients(Rng& rng, float size) {
    for (Parameter& p : parameters.all())
      for (std::int64_t i = 0; i < p.shape.elements(); ++i)
        p.gradient.f32()[i] += size * rng.normal();
  }
  void compare(const TrainSpec& spec, double decay) {
    Optimizer optimizer(spec, parameters, context);
    const auto& params = spec.optimizer_params;
    const std::vector<double> start = flat(false), zeros(start.size(), 0.0);
    Reference reference{
        params[0], params[1], params[2], decay, spec.clip_norm, spec.exponential_smoothing,
        start,     zeros,     zeros,     start};
    Rng rng(99);
    for (int t = 1; t <= 60; ++t) {
      const int batches = 1 + t % 3;  // accumulation: gradients of several batches add up
      for (int b = 0; b < batches; ++b) add_gradients(rng, static_cast<float>(t % 5));
      const double rate = 0.01 / t;
      const double norm = reference.step(flat(true), 11.0 * batches, rate);
      const UpdateResult result = optimizer.update(rate, 11 * batches);
      ASSERT_TRUE(result.applied);
      EXPECT_NEAR(result.gradient_norm, norm, 1e-5 * norm + 1e-12);
      for (double g : flat(true)) ASSERT_EQ(g, 0.0);
    }
    const std::vector<double> value = flat(false);
    std::vector<double> published;
    optimizer.for_each_published([&](const std::string&, Tensor& t) {
      published.insert(published.end(), t.f32(), t.f32() + t.elements());
    });
    ASSERT_EQ(published.size(), value.size());
    for (std::size_t i = 0; i < value.size(); ++i) {
      EXPECT_NEAR(value[i], reference.value[i], 2e-6);
      EXPECT_NEAR(published[i],
                  spec.exponential_smoothing > 0 ? reference.average[i] : reference.value[i], 2e-6);
    }
    EXPECT_EQ(optimizer.steps(), 60);
  }

  void goes_on(TrainSpec spec, std::size_t tensors);

  ThreadPool pool{2};
  Arena arena;
  Context context;
  ParameterSet parameters;
};

TEST_F(OptimizerTest, AdamAsInThePaper) {
  TrainSpec spec;
  spec.optimizer_params = {0.9, 0.98, 1e-9};
  spec.clip_norm = 0;
  compare(spec, 0);
}

TEST_F(OptimizerTest, AdamClippedAndAveraged) {
  TrainSpec spec;
  spec.optimizer_params = {0.8, 0.999, 1e-6};
  spec.clip_norm = 0.3;
  spec.exponential_smoothing = 0.2;
  compare(spec, 0);
}

TEST_F(OptimizerTest, AdamW) {
  TrainSpec spec;
  spec.optimizer = UpdateRule::adamw;
  spec.optimizer_params = {0.9, 0.95, 1e-8, 0.3};
  spec.exponential_smoothing = 0.001;
  compare(spec, 0.3);
}

// The other rules written out as in their papers, in double; `step(w, g, first, second, rate)`
// moves one weight.
using Step = std::function<void(double& w, double g, double& first, double& second, double rate)>;
struct OtherRule {
  const char* name;
  std::vector<double> params;
  int states;
  Step step;
};
const OtherRule other_rules[] = {
    {"adadelta",
     {0.9, 1e-4},
     2,
     [](double& w, double g, double& gradients, double& steps, double rate) {
       gradients = 0.9 * gradients + 0.1 * g * g;
       const double dx = std::sqrt((steps + 1e-4) / (gradients + 1e-4)) * g;
       steps = 0.9 * steps + 0.1 * dx * dx;
       w -= rate * dx;
     }},
    {"adagrad",
     {1e-6},
     1,
     [](double& w, double g, double& sum, double&, double rate) {
       sum += g * g;
       w -= rate * g / (std::sqrt(sum) + 1e-6);
     }},
    {"sgd", {}, 0, [](double& w, double g, double&, double&, double rate) { w -= rate * g; }},
    {"sgd",
     {0.8},
     1,
     [](double& w, double g, double& v, double&, double rate) {
       v = 0.8 * v + g;
       w -= rate * v;
     }},
};

TEST_F(OptimizerTest, TheOtherRulesAsInTheirPapers) {
  for (const OtherRule& rule : other_rules) {
    SCOPED_TRACE(fmt::format("{} with {} numbers", rule.name, rule.params.size()));
    TrainSpec spec;
    spec.optimizer = parse_enum<UpdateRule>(rule.name, "optimizer");
    spec.optimizer_params = rule.params;
    spec.clip_norm = 0.4;
    spec.exponential_smoothing = 0.1;
    Optimizer optimizer(spec, parameters, context);
    int states = 0;
    optimizer.for_each_state(
        [&](const std::string& name, Tensor&) { states += name.starts_with("value.") ? 0 : 1; });
    EXPECT_EQ(states, 2 * rule.states);  // of two parameters
    std::vector<double> value = flat(false), first(value.size(), 0.0), second = first,
                        average = value;
    Rng rng(5);
    for (int t = 1; t <= 40; ++t) {
      add_gradients(rng, 3);
      std::vector<double> g = flat(true);
      double square = 0;
      for (double& x : g) x /= 7, square += x * x;
      const double clip = std::min(1.0, 0.4 / std::sqrt(square)), rate = 0.5 / t;
      for (std::size_t i = 0; i < g.size(); ++i) {
        rule.step(value[i], clip * g[i], first[i], second[i], rate);
        average[i] += std::max(0.1, 9.0 / (t + 9)) * (value[i] - average[i]);
      }
      ASSERT_TRUE(optimizer.update(rate, 7).applied);
    }
    const std::vector<double> got = flat(false);
    std::vector<double> published;
    optimizer.for_each_published([&](const std::string&, Tensor& t) {
      published.insert(published.end(), t.f32(), t.f32() + t.elements());
    });
    for (std::size_t i = 0; i < value.size(); ++i) {
      EXPECT_NEAR(got[i], value[i], 4e-6);
      EXPECT_NEAR(published[i], average[i], 4e-6);
    }
  }
}

TEST_F(OptimizerTest, AGradientThatIsNotFiniteChangesNothing) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Optimizer optimizer(TrainSpec{}, parameters, context);
    const auto before = flat(false);
    parameters.find("b")->gradient.f32()[3] = bad;
    EXPECT_FALSE(optimizer.update(0.1, 5).applied);
    EXPECT_EQ(flat(false), before);
    EXPECT_EQ(flat(true), std::vector<double>(before.size(), 0.0));
    EXPECT_EQ(optimizer.steps(), 0);
  }
}

void OptimizerTest::goes_on(TrainSpec spec, std::size_t tensors) {
  spec.exponential_smoothing = 0.01;
  Rng rng(3);
  Optimizer first(spec, parameters, context);
  for (int t = 0; t < 5; ++t) {
    add_gradients(rng, 1);
    first.update(0.01, 4);
  }
  using Copies = std::vector<std::pair<std::string, std::vector<float>>>;
  Copies state, average;
  const auto copy_into = [](Copies& copies) {
    return [&copies](const std::string& name, Tensor& t) {
      copies.emplace_back(name, std::vector<float>(t.f32(), t.f32() + t.elements()));
    };
  };
  const auto read_from = [](const Copies& copies, std::size_t& at) {
    return [&copies, &at](const std::string& name, Tensor& t) {
      ASSERT_EQ(copies[at].first, name);
      std::copy(copies[at].second.begin(), copies[at].second.end(), t.f32());
      ++at;
    };
  };
  first.for_each_state(copy_into(state));
  first.for_each_published(copy_into(average));
  ASSERT_EQ(state.size(), tensors);

  Rng rng_at(rng.seed(), rng.stream(), rng.position());
  add_gradients(rng, 1);
  first.update(0.01, 4);
  Copies expected, expected_average;
  first.for_each_state(copy_into(expected));
  first.for_each_published(copy_into(expected_average));

  parameters.find("a")->value.f32()[0] = 17;  // all comes from the state
  Optimizer second(spec, parameters, context);
  std::size_t at = 0;
  second.for_each_state(read_from(state, at));
  at = 0;
  second.for_each_published(read_from(average, at));
  second.set_steps(5);
  add_gradients(rng_at, 1);
  second.update(0.01, 4);
  Copies got, got_average;
  second.for_each_state(copy_into(got));
  second.for_each_published(copy_into(got_average));
  EXPECT_EQ(got, expected);
  EXPECT_EQ(got_average, expected_average);
}

// Gradients that the next pass overwrites stay; the update is the same.
TEST_F(OptimizerTest, LeavesTheGradientsThatPassesOverwrite) {
  TrainSpec spec;
  spec.optimizer_params = {0.9, 0.98, 1e-9};
  for (const double smoothing : {0.0, 0.1}) {
    spec.exponential_smoothing = smoothing;
    Parameter &kept = parameters.all()[0], &cleared = parameters.all()[1];
    for (Parameter& p : parameters.all()) {
      p.gradient_starts_with_product = false;
      std::fill_n(p.gradient.f32(), p.shape.elements(), 0.0f);
    }
    const std::vector<double> start = flat(false);
    const auto update = [&](bool keep, float scale) {
      for (std::size_t i = 0; Parameter & p : parameters.all())
        for (std::int64_t e = 0; e < p.shape.elements(); ++e)
          p.value.f32()[e] = static_cast<float>(start[i++]);
      kept.gradient_starts_with_product = keep;
      Optimizer optimizer(spec, parameters, context);
      Rng rng(5);
      add_gradients(rng, scale);
      optimizer.update(0.1, 3);
      EXPECT_EQ(kept.gradient_is_old, keep);
      EXPECT_FALSE(cleared.gradient_is_old);
      return flat(false);
    };
    const std::vector<double> expected = update(false, 1.0f);
    for (const double gradient : flat(true)) EXPECT_EQ(gradient, 0.0);
    EXPECT_EQ(update(true, 1.0f), expected);
    const std::vector<double> old = flat(true);
    for (std::size_t i = 0; i < 15; ++i) EXPECT_NE(old[i], 0.0);
    for (std::size_t i = 15; i < old.size(); ++i) EXPECT_EQ(old[i], 0.0);
    Optimizer(spec, parameters, context).clear();
    EXPECT_FALSE(kept.gradient_is_old);
    for (const double gradient : flat(true)) EXPECT_EQ(gradient, 0.0);
    update(true, std::numeric_limits<float>::infinity());  // not applied: starts again all the same
    for (std::size_t i = 15; i < old.size(); ++i) EXPECT_EQ(flat(true)[i], 0.0);
    Optimizer(spec, parameters, context).clear();
  }
}

TEST_F(OptimizerTest, StateGoesOnWhereItWas) {
  TrainSpec spec;
  for (const auto& [name, params, tensors] : {std::tuple{"adam", std::vector<double>{}, 6u},
                                              {"adamw", {}, 6u},
                                              {"adadelta", {}, 6u},
                                              {"adagrad", {}, 4u},
                                              {"sgd", {}, 2u},
                                              {"sgd", {0.9}, 4u}}) {
    SCOPED_TRACE(name);
    spec.optimizer = parse_enum<UpdateRule>(name, "optimizer");
    spec.optimizer_params = params;
    goes_on(spec, tensors);
    for (Parameter& p : parameters.all()) std::fill_n(p.gradient.f32(), p.shape.elements(), 0.0f);
  }
}

// The moments of a rare word fall to 0. Rounding would keep subnormal ones forever (0.9 times the
// smallest number is that number again), and each update of them slow.
TEST_F(OptimizerTest, MomentsWithoutGradientsBecomeZero) {
  TrainSpec spec;
  Optimizer optimizer(spec, parameters, context);
  Rng rng(3);
  add_gradients(rng, 1.0f);
  for (int t = 0; t < 1200; ++t) ASSERT_TRUE(optimizer.update(1e-3, 1).applied);
  int first_moments = 0;
  optimizer.for_each_state([&](const std::string& name, Tensor& state) {
    if (!name.starts_with("first.")) return;
    ++first_moments;
    for (std::int64_t i = 0; i < state.elements(); ++i) EXPECT_EQ(state.f32()[i], 0.0f) << name;
  });
  EXPECT_EQ(first_moments, 2);
}

// At the limits of what check() allows.
TEST_F(OptimizerTest, WeightsWithoutGradientsStayAsTheyAre) {
  constexpr double least = 1e-30, most = 0.99999994;
  const std::vector<double> start = flat(false);
  for (const auto& [name, params] : {std::pair{"adam", std::vector<double>{most, most, least}},
                                     {"adamw", {most, most, least, 0.0}},
                                     {"adadelta", {most, least}},
                                     {"adagrad", {least}},
                                     {"sgd", {most}}}) {
    TrainSpec spec;
    spec.optimizer = parse_enum<UpdateRule>(name, "optimizer");
    spec.optimizer_params = params;
    Optimizer::check(spec);
    Optimizer optimizer(spec, parameters, context);
    for (int t = 0; t < 3; ++t) ASSERT_TRUE(optimizer.update(0.1, 1).applied) << name;
    EXPECT_EQ(flat(false), start) << name;
  }
}

TEST_F(OptimizerTest, RefusesWhatItDoesNotKnow) {
  TrainSpec spec;
  spec.optimizer = UpdateRule::adam;
  spec.optimizer_params = {0.9, 0.98, 1e-9, 0.1};
  EXPECT_THROW(Optimizer(spec, parameters, context), Error);
  spec.optimizer_params = {1.0};
  EXPECT_THROW(Optimizer(spec, parameters, context), Error);
  for (const auto& [name, params] : {std::pair{"adadelta", std::vector<double>{0.95, 0.0}},
                                     {"adadelta", {0.9, 1e-6, 1}},
                                     {"adagrad", {-1}},
                                     {"adagrad", {1e-40}},
                                     {"adam", {0.9, 0.98, 1e-46}},
                                     {"adam", {0.9, 0.99999999}},
                                     {"sgd", {1.0}},
                                     {"sgd", {-0.1}},
                                     {"adamw", {0.9, 0.9, 1e-9, -1}}}) {
    spec.optimizer = parse_enum<UpdateRule>(name, "optimizer");
    spec.optimizer_params = params;
    try {
      Optimizer::check(spec);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::usage);
      EXPECT_NE(std::string(error.what()).find("optimizer-params"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace nmt::train
