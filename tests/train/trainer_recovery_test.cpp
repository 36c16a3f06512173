#include "trainer_case.h"

#include <cmath>
#include <limits>

// Gradients that are not finite: skipped updates, and the return to an older checkpoint.

namespace nmt::train {
namespace {

TEST_F(TrainerTest, SkipsAnUpdateThatIsNotFinite) {
  FakeStore store;
  spec.optimizer_delay = 1;
  Training run(spec, store);
  run.source.on_next = [&](std::int64_t given) {
    if (given == 10)
      run.model.parameters().find("decoder.output_bias")->gradient.f32()[0] =
          std::numeric_limits<float>::quiet_NaN();
  };
  EXPECT_EQ(run(), ExitStatus::ok);
  EXPECT_EQ(run.trainer.state().progress.updates, 40);
  EXPECT_EQ(run.trainer.state().batches, 41);
  EXPECT_EQ(run.trainer.state().stalls.recoveries, 0);
  EXPECT_EQ(run.model.forgotten, 1);
  for (const auto& [name, values] : store.weights)
    for (float value : values) ASSERT_TRUE(std::isfinite(value)) << name;
}

TEST_F(TrainerTest, GoesBackAtHalfTheRateAfterThree) {
  FakeStore store;
  spec.optimizer_delay = 1;
  spec.save_freq = "8u";
  Training run(spec, store);
  std::vector<std::int64_t> seen;
  bool poison = true;
  run.source.on_next = [&](std::int64_t given) {
    seen.push_back(given);
    if (poison && given >= 11 && given <= 13)
      run.model.parameters().find("decoder.output_bias")->gradient.f32()[0] =
          std::numeric_limits<float>::infinity();
    if (given == 13) poison = false;
  };
  EXPECT_EQ(run(), ExitStatus::ok);
  EXPECT_EQ(run.trainer.state().stalls.recoveries, 1);
  EXPECT_EQ(run.model.forgotten, 4);  // three skipped updates and the return
  ASSERT_GT(seen.size(), 13u);
  EXPECT_EQ(seen[12], 13);
  EXPECT_EQ(seen[13], 9);  // the batch after the checkpoint of update 8
  EXPECT_EQ(run.trainer.state().progress.updates, 40);
}

// Gradients of batches 11 to `last` that are not finite, until an older checkpoint is back.
void poison_from_11(Training& run, std::int64_t last, const std::function<void()>& at_first = {}) {
  run.source.on_next = [&run, last, at_first](std::int64_t given) {
    if (given < 11 || given > last || run.trainer.state().stalls.recoveries > 0) return;
    run.model.parameters().find("decoder.output_bias")->gradient.f32()[0] =
        std::numeric_limits<float>::quiet_NaN();
    if (given == 11 && at_first) at_first();
  };
}

// A stop request, the end of a run and a validation within skipped updates wait for an update that
// counts: the training goes on as an undisturbed one.
TEST_F(TrainerTest, NothingIsSavedBetweenSkippedUpdates) {
  spec.optimizer_delay = 1;
  spec.save_freq = "8u";
  std::int64_t labels = 0;  // of 10 updates
  {
    FakeStore store;
    spec.after = "10u";
    Training run(spec, store);
    run();
    labels = run.trainer.state().progress.labels;
  }
  const std::string within = fmt::format("{}t", labels + 1);  // reached by update 11
  for (const std::int64_t last : {11, 12, 13}) {
    SCOPED_TRACE(last);
    spec.after = "40u";
    FakeStore whole, stopped, ended, validated;
    {
      Training run(spec, whole);
      poison_from_11(run, last);
      EXPECT_EQ(run(), ExitStatus::ok);
      EXPECT_EQ(run.trainer.state().stalls.recoveries, last == 13 ? 1 : 0);
    }
    {
      Training first(spec, stopped);
      poison_from_11(first, last, [&] { first.stop = true; });
      EXPECT_EQ(first(), ExitStatus::interrupted);
      EXPECT_EQ(first.trainer.state().progress.updates, last == 13 ? 8 : 11);
    }
    spec.after = within;
    {
      Training first(spec, ended);
      poison_from_11(first, last);
      EXPECT_EQ(first(), ExitStatus::ok);
      EXPECT_EQ(first.trainer.state().progress.updates, 11);
    }
    spec.after = "40u";
    for (FakeStore* const store : {&stopped, &ended}) {
      Training second(spec, *store);
      poison_from_11(second, last);
      EXPECT_EQ(second(), ExitStatus::ok);
      EXPECT_EQ(whole.weights, store->weights);
      EXPECT_EQ(whole.state, store->state);
    }
    spec.after = "12u";
    spec.valid_freq = within;
    FakeValidator validator({2, 1});
    Training run(spec, validated, &validator);
    poison_from_11(run, last);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(validator.at.front(), 11);
    EXPECT_EQ(validated.best_updates, (std::vector<std::int64_t>{11}));
  }
}

// The newest checkpoint is of other text, and nothing has been saved since: this text is read from
// its beginning again.
TEST_F(TrainerTest, GoesBackToTheBeginningOfNewText) {
  FakeStore store;
  spec.optimizer_delay = 1;
  spec.valid_freq = "";
  spec.after = "20u";
  Training(spec, store)();
  spec.after = "30u";
  Training other(spec, store, nullptr, "other files");
  std::vector<std::int64_t> seen;
  other.source.on_next = [&](std::int64_t given) {
    seen.push_back(given);
    if (seen.size() >= 3 && seen.size() <= 5)
      other.model.parameters().find("decoder.output_bias")->gradient.f32()[0] =
          std::numeric_limits<float>::infinity();
  };
  EXPECT_EQ(other(), ExitStatus::ok);
  EXPECT_EQ(other.trainer.state().stalls.recoveries, 1);
  ASSERT_GT(seen.size(), 6u);
  EXPECT_EQ((std::vector<std::int64_t>(seen.begin(), seen.begin() + 7)),
            (std::vector<std::int64_t>{1, 2, 3, 4, 5, 1, 2}));
  EXPECT_NEAR(other.trainer.state().progress.epochs, 10.0 / batches_a_pass, 1e-12);
}

// From update 8 of the first attempt on, the weights have a mark, which checkpoints keep. With the
// mark, no gradient from batch `first_bad` on is finite.
void spoil_at_8(Training& run, std::int64_t first_bad, const std::function<void()>& at_8 = {}) {
  run.source.on_next = [&run, first_bad, at_8](std::int64_t given) {
    Parameter& bias = *run.model.parameters().find("decoder.output_bias");
    if (given == 8 && run.trainer.state().stalls.recoveries == 0) {
      bias.value.f32()[0] = 40;
      if (at_8) at_8();
    }
    if (given >= first_bad && bias.value.f32()[0] > 20)
      bias.gradient.f32()[0] = std::numeric_limits<float>::quiet_NaN();
  };
}

TEST_F(TrainerTest, GoesBackBeyondACheckpointOfSpoiledWeights) {
  spec.optimizer_delay = 1;
  spec.save_freq = "4u";
  spec.valid_freq = "8u";
  {
    FakeStore store;
    FakeValidator validator({9, 5, 7, 8});
    Training run(spec, store, &validator);
    spoil_at_8(run, 9);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(run.trainer.state().stalls.recoveries, 1);
    EXPECT_EQ(store.discarded, (std::vector<std::int64_t>{8}));
    EXPECT_EQ(std::vector(store.updates.begin(), store.updates.begin() + 4),
              (std::vector<std::int64_t>{0, 4, 8, 8}));
    EXPECT_EQ(run.trainer.state().best, 9);  // its checkpoint is the best, whatever came of it
    EXPECT_EQ(run.trainer.state().best_update, 8);
    EXPECT_EQ(run.trainer.state().best_due, 8);
  }
  {  // Some updates follow it: lower rates are tried first.
    FakeStore store;
    Training run(spec, store);
    spoil_at_8(run, 10);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(run.trainer.state().stalls.recoveries, 3);
    EXPECT_EQ(store.discarded, (std::vector<std::int64_t>{8}));
  }
  FakeStore store;
  store.keeps_older = false;
  Training run(spec, store);
  spoil_at_8(run, 9);
  EXPECT_THROW(run(), Error);
}

TEST_F(TrainerTest, AStopOfSpoiledWeightsIsNoHindrance) {
  spec.optimizer_delay = 1;
  spec.save_freq = "100u";
  FakeStore whole, parts;
  {
    Training run(spec, whole);
    spoil_at_8(run, 9);
    EXPECT_EQ(run(), ExitStatus::ok);
  }
  {
    Training first(spec, parts);
    spoil_at_8(first, 9, [&] { first.stop = true; });
    EXPECT_EQ(first(), ExitStatus::interrupted);
    EXPECT_EQ(first.trainer.state().progress.updates, 8);
  }
  Training second(spec, parts);
  spoil_at_8(second, 9);
  EXPECT_EQ(second(), ExitStatus::ok);
  EXPECT_EQ(whole.weights, parts.weights);
  EXPECT_EQ(whole.state, parts.state);
}

// Values of other options of the search, in a checkpoint of the run before, do not count either.
TEST_F(TrainerTest, GoesBackBeyondTheCheckpointItResumed) {
  spec.optimizer_delay = 1;
  spec.valid_freq = "4u";
  FakeStore store;
  FakeValidator validator({9, 1, 3, 2});
  spec.after = "8u";
  {
    Training first(spec, store, &validator);
    spoil_at_8(first, 9);
    first();
  }
  spec.after = "12u";
  Training second(spec, store, &validator, "c", "d", "beam-size");
  spoil_at_8(second, 9);
  EXPECT_EQ(second(), ExitStatus::ok);
  EXPECT_EQ(store.discarded, (std::vector<std::int64_t>{8}));
  EXPECT_EQ(validator.at, (std::vector<std::int64_t>{4, 8, 8, 12}));
  EXPECT_EQ(second.trainer.state().best, 3);
  EXPECT_EQ(second.trainer.state().best_due, 3);
}

TEST_F(TrainerTest, GivesUpWhenNoRateHelps) {
  FakeStore store;
  Training run(spec, store);
  run.source.on_next = [&](std::int64_t) {
    run.model.parameters().find("decoder.output_bias")->gradient.f32()[0] =
        std::numeric_limits<float>::quiet_NaN();
  };
  EXPECT_THROW(run(), Error);
}

}  // namespace
}  // namespace nmt::train
