#include "kernels/attention.h"

#include "core/rng.h"
#include "core/threads/thread_pool.h"
#include "tests/kernels/guarded_memory.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

// One sentence and one query: additive scores over `steps` positions with `space` channels, values
// in +-`range`.
struct Case {
  std::int64_t steps, space;
  float range;
};

class AdditiveScores : public testing::Test {
 protected:
  test::Guarded<float> draw(std::int64_t n, float range) {
    test::Guarded<float> x(static_cast<std::size_t>(n));
    for (float& value : x) value = range * (2 * rng_.uniform() - 1);
    return x;
  }
  void prepare(const Case& c) {
    case_ = c;
    query = draw(c.space, c.range);
    keys = draw(c.steps * c.space, c.range);
    v = draw(c.space, 1.0f);
    length = static_cast<std::int32_t>(c.steps);
    memory = {};
    for (std::int64_t s = 0; s < c.steps; ++s) memory.push_back(static_cast<float>(s));  // M 1
    memory.shrink_to_fit();
  }
  test::Guarded<float> weights() {
    test::Guarded<float> exp_keys(keys.size()), weights(static_cast<std::size_t>(case_.steps));
    attention_exp_keys(cpu_, static_cast<std::int64_t>(keys.size()), keys.data(), exp_keys.data());
    Attention a;
    a.steps = case_.steps;
    a.sentences = 1;
    a.space = case_.space;
    a.width = 1;
    a.exp_keys = exp_keys.data();
    a.memory = memory.data();
    a.lengths = &length;
    a.v = v.data();
    float context = 0;
    attention_forward(cpu_, a, 1, 1, nullptr, query.data(), weights.data(), &context);
    return weights;
  }
  std::vector<double> expected() const {
    std::vector<double> scores;
    double sum = 0, most = -1e300;
    for (std::int64_t s = 0; s < case_.steps; ++s) {
      double score = 0;
      for (std::int64_t j = 0; j < case_.space; ++j)
        score += v[j] * std::tanh(double{query[j]} + keys[s * case_.space + j]);
      scores.push_back(score);
      most = std::max(most, score);
    }
    for (double& score : scores) sum += score = std::exp(score - most);
    for (double& score : scores) score /= sum;
    return scores;
  }

  test::Guarded<float> query, keys, v, memory;
  std::int32_t length = 0;

 private:
  Case case_{};
  Rng rng_{7};
  ThreadPool pool_{1};
  Cpu cpu_{&pool_};
};

TEST_F(AdditiveScores, AreThoseOfTanhInDouble) {
  // Odd numbers of channels, several chunks, and sums that saturate with either sign or nearly
  // cancel.
  for (const Case& c : {Case{1, 1, 1}, Case{5, 3, 1}, Case{7, 257, 1}, Case{3, 1031, 1},
                        Case{9, 64, 6}, Case{9, 33, 15}, Case{9, 33, 42}}) {
    prepare(c);
    const std::vector<double> right = expected();
    const test::Guarded<float> computed = weights();
    // The relative error of a weight is the absolute error of its score, which is a few 1e-7 per
    // channel plus the rounding of q + k.
    const double bound = (4e-7 + 3e-7 * c.range) * std::sqrt(static_cast<double>(c.space)) + 1e-6;
    for (std::size_t s = 0; s < right.size(); ++s)
      EXPECT_NEAR(computed[s], right[s], bound * right[s] + 1e-9)
          << c.steps << " x " << c.space << " range " << c.range << " at " << s;
  }
}

TEST_F(AdditiveScores, SaturateFarOutside) {
  prepare({2, 4, 1});
  for (const float q : {100.0f, 1e30f, std::numeric_limits<float>::infinity()}) {
    query.assign(4, q);  // tanh is 1 for every key, so the scores are equal
    for (const float weight : weights()) EXPECT_FLOAT_EQ(weight, 0.5f);
    query.assign(4, -q);
    for (const float weight : weights()) EXPECT_FLOAT_EQ(weight, 0.5f);
  }
}

TEST_F(AdditiveScores, ShowANan) {
  prepare({3, 6, 1});
  query[4] = std::numeric_limits<float>::quiet_NaN();
  for (const float weight : weights()) EXPECT_TRUE(std::isnan(weight));
  prepare({3, 6, 1});
  keys[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(weights()[1]));
}

}  // namespace
}  // namespace nmt::kernels
