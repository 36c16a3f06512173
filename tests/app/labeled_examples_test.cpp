#include "app/train/tasks/labeled_examples.h"

#include <gtest/gtest.h>

namespace nmt::app {
namespace {

TEST(LabeledExamples, HugeUpdatesAreLargerThanTheText) {
  TrainingSpec spec;
  spec.data.mini_batch_words = 65536;
  spec.train.optimizer_delay = 65536;  // the product is 2^32
  std::vector<train::Choice> choices;
  choose_schedule(spec, 1'000'000, choices);
  EXPECT_EQ(spec.train.disp_freq, "1u");
  spec.train.disp_freq = "";
  spec.train.optimizer_delay = 1;
  choose_schedule(spec, 655'360, choices);  // ten updates
  EXPECT_EQ(spec.train.disp_freq, "5u");
}

}  // namespace
}  // namespace nmt::app
