#include "train/stop_rules.h"

#include <string>

#include <gtest/gtest.h>

namespace nmt::train {
namespace {

TEST(StopRules, TheFirstRuleThatHoldsIsNamed) {
  TrainSpec spec;
  spec.after = "10e,100u,2Kt";
  spec.early_stopping = 3;
  spec.max_minutes = 2;
  const std::vector<Period> after = parse_periods(spec.after, "after");
  TrainingState state;
  state.best_metric = "bleu";
  const auto why = [&](double seconds = 0, double ending = 0) {
    state.validation_seconds = ending;
    return finished(spec, after, state, seconds);
  };
  state.progress = {99, 9.9, 1999};
  state.stalled = 2;
  EXPECT_EQ(why(119), "");
  EXPECT_EQ(why(120), "2.00 of 2.00 minutes (max-minutes)");
  EXPECT_EQ(why(90, 29.9), "");
  EXPECT_EQ(why(90, 30), "1.50 of 2.00 minutes, with 30.0 s to validate and save (max-minutes)");
  spec.max_minutes = 12;
  EXPECT_EQ(why(597, 123), "9.95 of 12.0 minutes, with 123.0 s to validate and save (max-minutes)");
  EXPECT_EQ(why(600, 120), "10.0 of 12.0 minutes, with 120.0 s to validate and save (max-minutes)");
  spec.max_minutes = 2;
  state.stalled = 3;
  EXPECT_EQ(why(120), "3 validations without a better bleu (early-stopping)");
  state.progress.labels = 2000;
  EXPECT_EQ(why(120), "target token 2000 of 2000 (after)");
  state.progress.updates = 101;
  EXPECT_EQ(why(120), "update 101 of 100 (after)");
  state.progress.epochs = 10;
  EXPECT_EQ(why(120), "epoch 10 of 10 (after)");
}

TEST(StopRules, PartsOfEpochsAreTold) {
  TrainingState state;
  const auto why = [&](const char* after, double epochs) {
    state.progress.epochs = epochs;
    return finished({}, parse_periods(after, "after"), state, 0);
  };
  EXPECT_EQ(why("0.5e", 0.5012345), "epoch 0.5012 of 0.5 (after)");
  EXPECT_EQ(why("1.5e", 1.5), "epoch 1.5 of 1.5 (after)");
  EXPECT_EQ(why("20000e", 20000.02), "epoch 20000 of 20000 (after)");
  state.progress.labels = 16110;  // 16.1 times 1000 is not a whole number in floating point
  EXPECT_EQ(why("16.1Kt", 0), "target token 16110 of 16100 (after)");
}

TEST(StopRules, TheNearestRuleTellsHowFarATrainingIs) {
  TrainSpec spec;
  spec.max_minutes = 0;
  const std::vector<Period> after = parse_periods("10e,100u", "after");
  TrainingState state;
  state.progress = {40, 5, 1000};
  EXPECT_DOUBLE_EQ(share_done(spec, after, state, 30), 0.5);
  // 20 updates and one epoch in 10 s.
  EXPECT_DOUBLE_EQ(*seconds_left(spec, after, {{20, 4, 0}, 10}, state.progress, 30), 30);
  EXPECT_FALSE(seconds_left(spec, {}, {{20, 4, 0}, 10}, state.progress, 30));
  spec.max_minutes = 1;
  state.validation_seconds = 15;
  EXPECT_DOUBLE_EQ(share_done(spec, after, state, 30), 0.75);
  EXPECT_DOUBLE_EQ(*seconds_left(spec, after, {{20, 4, 0}, 10}, state.progress, 42), 18);
}

TEST(StopRules, ZeroIsNoRule) {
  TrainSpec spec;
  spec.early_stopping = 0;
  spec.max_minutes = 0;
  TrainingState state;
  state.progress = {1'000'000, 1000, 1'000'000'000};
  state.stalled = 1000;
  state.validation_seconds = 1e9;
  EXPECT_EQ(finished(spec, {}, state, 1e9), "");
}

}  // namespace
}  // namespace nmt::train
