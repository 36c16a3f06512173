#include "autograd/ops/plain.h"
#include "tests/support/engine.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace nmt {
namespace {

constexpr std::int64_t steps = 7, batch = 20, width = 50;

// Values and gradients of dropout applied to ones, with output gradient 1.
struct Dropped {
  std::vector<double> value, gradient;
  double at(std::int64_t t, std::int64_t b, std::int64_t i) const {
    return value[(t * batch + b) * width + i];
  }
};
Dropped drop(bool shared, std::uint64_t pass, float p, int dropouts = 1) {
  test::Engine engine;
  Tape tape(engine.context, true, 3, pass);
  if (shared) tape.share_dropout_over_steps();
  Tensor ones = engine.context.empty({steps, batch, width}),
         dy = engine.context.empty({steps, batch, width});
  std::fill_n(ones.f32(), ones.elements(), 1.0f);
  std::fill_n(dy.f32(), dy.elements(), 1.0f);
  const Var x = tape.result(ones);
  Var y;
  for (int i = 0; i < dropouts; ++i) y = ops::dropout(tape, x, p);
  Dropped out;
  out.value = test::doubles(y->value);
  tape.accumulate(*y, dy);
  tape.backward();
  out.gradient = test::doubles(x->gradient);
  return out;
}

double share_of_zeros(const std::vector<double>& values) {
  double zeros = 0;
  for (double value : values) zeros += value == 0;
  return zeros / static_cast<double>(values.size());
}

TEST(Dropout, EveryStepHasItsMaskUnlessShared) {
  const float p = 0.3f;
  for (const bool shared : {false, true}) {
    const Dropped out = drop(shared, 5, p);
    // Five standard deviations of the mean over the independent draws.
    const double draws = static_cast<double>(batch * width * (shared ? 1 : steps));
    EXPECT_NEAR(share_of_zeros(out.value), p, 5 * std::sqrt(p * (1 - p) / draws));
    double other_step = 0, other_sentence = 0;
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t i = 0; i < width; ++i) {
        EXPECT_TRUE(out.at(0, b, i) == 0 || std::abs(out.at(0, b, i) - 1 / (1 - p)) < 1e-6);
        for (std::int64_t t = 1; t < steps; ++t) other_step += out.at(0, b, i) != out.at(t, b, i);
        other_sentence += out.at(0, b, i) != out.at(0, (b + 1) % batch, i);
      }
    const double differ = 2 * p * (1 - p);
    if (shared)
      EXPECT_EQ(other_step, 0);
    else
      EXPECT_NEAR(other_step / static_cast<double>((steps - 1) * batch * width), differ, 0.05);
    EXPECT_NEAR(other_sentence / static_cast<double>(batch * width), differ, 0.06);
    EXPECT_EQ(out.gradient, out.value);  // the gradient of ones through the same mask
  }
}

TEST(Dropout, SharedMasksDifferByPassAndByPlace) {
  const Dropped first = drop(true, 5, 0.5f);
  EXPECT_EQ(drop(true, 5, 0.5f).value, first.value);
  EXPECT_NE(drop(true, 6, 0.5f).value, first.value);
  EXPECT_NE(drop(true, 5, 0.5f, 2).value, first.value);
}

}  // namespace
}  // namespace nmt
