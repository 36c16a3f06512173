#include "app/train/tasks/labeled_examples.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::app {
namespace {

TEST(LabeledExamples, HugeUpdatesAreLargerThanTheText) {
  TrainingSpec spec;
  spec.data.mini_batch_words = 65536;
  spec.train.optimizer_delay = 65536;  // the product is 2^32
  std::vector<train::Choice> choices;
  choose_schedule(spec, 1000, 1'000'000, choices);
  EXPECT_EQ(spec.train.disp_freq, "1u");
  spec.train.disp_freq = "";
  spec.train.optimizer_delay = 1;
  choose_schedule(spec, 1000, 655'360, choices);  // ten updates
  EXPECT_EQ(spec.train.disp_freq, "5u");
}

TEST(LabeledExamples, AnEpochOfFewExamplesPerBatchHasMoreUpdates) {
  TrainingSpec spec;
  spec.data.mini_batch_words = 512;
  spec.data.mini_batch = 2;
  std::vector<train::Choice> choices;
  choose_schedule(spec, 190, 2560, choices);
  EXPECT_EQ(spec.train.lr_warmup, "95u");
  EXPECT_EQ(spec.train.disp_freq, "47u");
}

TEST(LabeledExamples, TheRateDependsOnOptimizerAndSchedule) {
  const auto chosen = [](auto change) {
    TrainingSpec spec;
    spec.data.mini_batch_words = 512;
    change(spec.train);
    std::vector<train::Choice> choices;
    choose_schedule(spec, 200, 5120, choices);
    const auto warmup = std::find_if(choices.begin(), choices.end(),
                                     [](const auto& choice) { return choice.name == "lr-warmup"; });
    return std::pair(spec.train.learn_rate,
                     warmup == choices.end() ? "" : warmup->value + ", " + warmup->why);
  };
  EXPECT_EQ(chosen([](TrainSpec&) {}), std::pair(0.002, std::string("10u, one epoch")));
  EXPECT_EQ(chosen([](TrainSpec& train) { train.optimizer = UpdateRule::sgd; }),
            std::pair(1.0, std::string("0u, sgd needs none")));
  // RNMT+ rises from a fourth of the peak.
  EXPECT_EQ(chosen([](TrainSpec& train) {
              train.schedule = RateSchedule::rnmt;
              train.rnmt_schedule = {4, 500, 600000, 1200000};
            }),
            std::pair(0.0005, std::string()));
}

}  // namespace
}  // namespace nmt::app
