#include "app/benchmark/slope.h"

#include "tests/support/engine.h"

#include <cmath>

#include <gtest/gtest.h>

namespace nmt::app::bench {
namespace {

// The loss that the check once took for a wrong gradient: of slope 218, where a step of 2e-3 gives
// 232.8. Sums of float32 terms round by about 1e-6.
TEST(Slope, OfACurvedLossThatRounds) {
  for (const double rounding : {0.0, 1e-6}) {
    int calls = 0;
    const auto loss = [&](double x) {
      const double noise = rounding * std::sin(97.0 * ++calls);
      return (55 + 218 * x + 3e4 * x * x + 3.7e6 * x * x * x) * (1 + noise);
    };
    EXPECT_NEAR((loss(2e-3) - loss(-2e-3)) / 4e-3, 232.8, 0.1);
    EXPECT_NEAR(slope_at_zero(loss, 0.01 * 55 / 218), 218, 0.005 * 218);
  }
}

TEST(Slope, OfStrongAndOfWeakCurvature) {
  for (const double curvature : {0.01, 1.0, 100.0, 1000.0}) {
    const auto loss = [&](double x) { return 60 + std::sin(curvature * x) / curvature * 40; };
    EXPECT_NEAR(slope_at_zero(loss, 0.6 / 40), 40, 0.005 * 40) << curvature;
  }
}

ModelSpec small(const char* unit) {
  ModelSpec spec;
  spec.type = ModelType::deep;
  spec.enc_cell = spec.dec_cell = unit;
  spec.dim_emb = spec.dim_rnn = 16;
  spec.enc_depth = spec.dec_depth = 6;
  spec.context_aware = true;
  spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = 0;
  return spec;
}

Batch batch() {
  const std::vector<Ids> rows{{5, 9, 30, 7}, {8, 8, 21, 3}, {11, 39, 4, 16}};
  return make_batch({&rows[0], &rows[1], &rows[2]}, {&rows[2], &rows[0], &rows[1]}, 1, 2);
}

// Deep models of 6+6 layers, whose loss is the most curved; and gradients that are wrong in the
// encoder, or everywhere by a factor.
TEST(Slope, RightAndWrongGradients) {
  for (const char* unit : {"gru", "lrn"}) {
    test::Engine engine(1);
    Model model(small(unit), 40, 40, engine.context, 1);
    model.accumulate_gradients(batch(), {});
    const GradientSlope right(model, batch());
    EXPECT_NEAR(right.slope, right.norm, 0.01 * right.norm) << unit;
    for (Parameter& p : model.parameters().all())
      for (std::int64_t i = 0; i < p.shape.elements(); ++i) p.gradient.f32()[i] *= 1.05f;
    const GradientSlope large(model, batch());
    EXPECT_GT(std::abs(large.slope - large.norm), 0.02 * large.norm) << unit;
    for (Parameter& p : model.parameters().all())
      if (p.name.starts_with("encoder."))
        for (std::int64_t i = 0; i < p.shape.elements(); ++i) p.gradient.f32()[i] /= -1.05f;
    const GradientSlope flipped(model, batch());
    EXPECT_GT(std::abs(flipped.slope - flipped.norm), 0.02 * flipped.norm) << unit;
  }
}

}  // namespace
}  // namespace nmt::app::bench
