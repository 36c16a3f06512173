#include "core/nlohmann.h"
#include "trainer_case.h"

#include <cmath>
#include <limits>
#include <new>

namespace nmt::train {
namespace {

TEST_F(TrainerTest, StopsEarlyAndKeepsTheBest) {
  FakeStore store;
  FakeValidator validator({1, 5, 4, 6, 6, 3, 2, 1});
  spec.early_stopping = 3;
  spec.after = "1000u";
  Training run(spec, store, &validator);
  EXPECT_EQ(run(), ExitStatus::ok);
  EXPECT_EQ(validator.dry_runs, 1);
  EXPECT_EQ(validator.at, (std::vector<std::int64_t>{5, 10, 15, 20, 25, 30, 35}));
  EXPECT_EQ(store.best_updates, (std::vector<std::int64_t>{5, 10, 20}));
  EXPECT_EQ(*run.trainer.state().best, 6);
  EXPECT_NE(run.trainer.finished().find("early-stopping"), std::string::npos);
  Training again(spec, store, &validator);
  again.trainer.resume();
  EXPECT_NE(again.trainer.finished(), "");
}

// The validations at updates 3 and 13 end runs; they are the best, but no step of early stopping.
TEST_F(TrainerTest, AValidationAtTheEndOfARunDoesNotCountAgainstTheNext) {
  FakeStore store;
  FakeValidator validator({8, 1, 2, 9, 3, 4, 1, 1});
  spec.early_stopping = 2;
  for (const char* const after : {"3u", "13u"}) {
    spec.after = after;
    EXPECT_EQ(Training(spec, store, &validator)(), ExitStatus::ok);
  }
  spec.after = "1000u";
  Training run(spec, store, &validator);
  EXPECT_EQ(run(), ExitStatus::ok);
  EXPECT_EQ(validator.at, (std::vector<std::int64_t>{3, 5, 10, 13, 15, 20, 25, 30}));
  EXPECT_EQ(store.best_updates, (std::vector<std::int64_t>{3, 13}));
  EXPECT_EQ(run.trainer.state().best, 9);
  EXPECT_EQ(run.trainer.state().best_due, 4);
}

// Also where save-freq has saved that update before.
TEST_F(TrainerTest, AValidationAtTheEndOfARunIsSaved) {
  FakeStore store;
  FakeValidator validator({9, 5});
  spec.save_freq = "4u";
  spec.valid_freq = "8u";
  spec.after = "12u";
  EXPECT_EQ(Training(spec, store, &validator)(), ExitStatus::ok);
  EXPECT_EQ(validator.at, (std::vector<std::int64_t>{8, 12}));
  EXPECT_EQ(TrainingState::from_json(*store.text, "x").validated_update, 12);
}

// A validator has an arena of its own, and a device that training has filled has no room for it.
TEST_F(TrainerTest, AValidationWithoutMemoryIsRepeatedWithoutTheIdleMemoryOfTraining) {
  struct Hungry : FakeValidator {
    using FakeValidator::FakeValidator;
    ValidationResult validate(const CopyWeights& weights, const Progress& progress) override {
      refuse_first(validations);
      return FakeValidator::validate(weights, progress);
    }
    void dry_run(const CopyWeights& weights) override {
      refuse_first(trials);
      FakeValidator::dry_run(weights);
    }
    void refuse_first(int& calls) {
      if (calls++ % 2 == 0) throw std::bad_alloc();
      reserved = arena->statistics().reserved;
    }
    const Arena* arena = nullptr;
    int validations = 0, trials = 0;
    std::size_t reserved = 0;  // at the last call that went on
  };
  FakeStore store;
  Hungry validator({1, 2});
  spec.valid_freq = "4u";
  spec.after = "8u";
  Training run(spec, store, &validator);
  validator.arena = run.model.context().arena;
  { const Tensor idle = run.model.context().empty({1 << 24}); }  // a chunk of its own
  const std::size_t before = validator.arena->statistics().reserved;
  EXPECT_EQ(run(), ExitStatus::ok);
  EXPECT_EQ(validator.at, (std::vector<std::int64_t>{4, 8}));
  EXPECT_EQ(validator.validations, 4);
  EXPECT_EQ(validator.trials, 2 * validator.dry_runs);
  EXPECT_LT(validator.reserved, before);
}

TEST_F(TrainerTest, AnInterruptedValidationIsRepeated) {
  FakeStore store;
  FakeValidator validator({1});
  spec.after = "12u";
  Training run(spec, store, &validator);
  validator.interrupted = [&] { run.stop = true; };
  EXPECT_EQ(run(), ExitStatus::interrupted);
  EXPECT_FALSE(run.trainer.state().best);
  validator.interrupted = nullptr;
  Training again(spec, store, &validator);
  EXPECT_EQ(again(), ExitStatus::ok);
  EXPECT_EQ(validator.at, (std::vector<std::int64_t>{5, 5, 10, 12}));
}

// Due by valid-freq at update 10, at the end only at update 12.
TEST_F(TrainerTest, AStopInTheLastValidationDoesNotLoseIt) {
  for (const auto& [after, values, repeated] :
       {std::tuple{"10u", std::vector<double>{1, 3}, std::vector<double>{1, 0, 3}},
        {"12u", {1, 3, 5}, {1, 3, 0, 5}}}) {
    SCOPED_TRACE(after);
    spec.after = after;
    spec.save_freq = "4u";
    FakeStore whole, parts;
    FakeValidator v1(values), v2(repeated);
    EXPECT_EQ(Training(spec, whole, &v1)(), ExitStatus::ok);
    {
      Training first(spec, parts, &v2);
      v2.interrupted_at = std::ssize(values);
      v2.interrupted = [&] { first.stop = true; };
      EXPECT_EQ(first(), ExitStatus::interrupted);
      EXPECT_NE(first.trainer.finished(), "");
    }
    v2.interrupted = nullptr;
    {
      Training second(spec, parts, &v2);
      EXPECT_TRUE(second.trainer.resume());
      EXPECT_EQ(second.trainer.finished_on_all_ranks(), "");
      EXPECT_EQ(second.trainer.run(), ExitStatus::ok);
    }
    EXPECT_EQ(v2.at.back(), v1.at.back());
    EXPECT_EQ(whole.best_updates, parts.best_updates);
    EXPECT_EQ(whole.weights, parts.weights);
    EXPECT_EQ(whole.state, parts.state);
    TrainingState a = TrainingState::from_json(*whole.text, "a"),
                  b = TrainingState::from_json(*parts.text, "b");
    a.seconds = b.seconds = a.validation_seconds = b.validation_seconds = 0;
    EXPECT_EQ(a.to_json(), b.to_json());
    for (Validator* const validator :
         {static_cast<Validator*>(&v2), static_cast<Validator*>(nullptr)}) {
      Training over(spec, parts, validator);
      EXPECT_TRUE(over.trainer.resume());
      EXPECT_NE(over.trainer.finished_on_all_ranks(), "");
    }
  }
}

// The time reserved for the validation at the end is part of the state.
TEST_F(TrainerTest, ATrainingThatMaxMinutesEndedIsOver) {
  FakeStore store;
  spec.after = "";
  spec.valid_freq = "1u";
  spec.max_minutes = 1.0 / 60;
  // The last validation is none of the best, or the best, whose save takes time too.
  for (const std::vector<double>& values : {std::vector<double>{1}, {1, 2, 3, 4, 5, 6, 7}}) {
    store = FakeStore();
    FakeValidator validator(values);
    validator.takes = std::chrono::milliseconds(200);
    store.takes = std::chrono::milliseconds(values.size() > 1 ? 100 : 0);
    {
      Training run(spec, store, &validator);
      EXPECT_EQ(run(), ExitStatus::ok);
    }
    const TrainingState saved = TrainingState::from_json(*store.text, "x");
    EXPECT_LT(saved.seconds, 1);
    EXPECT_GE(saved.seconds + saved.validation_seconds, 1);
    // A second save of the same update keeps it the best.
    if (values.size() > 1) {
      EXPECT_EQ(store.best_updates.back(), store.updates.back());
    }
    Training again(spec, store, &validator);
    EXPECT_TRUE(again.trainer.resume());
    EXPECT_NE(again.trainer.finished_on_all_ranks(), "");
  }
  // The last validation is shorter than those before, whose time has ended the training.
  {
    store = FakeStore();
    FakeValidator validator({1, 2});
    validator.takes = std::chrono::milliseconds(600);
    validator.then_takes = std::chrono::milliseconds(1);
    spec.valid_freq = "1000000u";
    spec.after = "1u";
    spec.max_minutes = 0;
    {
      Training first(spec, store, &validator);
      EXPECT_EQ(first(), ExitStatus::ok);
    }
    spec.after = "";
    spec.max_minutes = 4.0 / 60;
    {
      Training second(spec, store, &validator);
      EXPECT_TRUE(second.trainer.resume());
      EXPECT_EQ(second(), ExitStatus::ok);
    }
    const TrainingState saved = TrainingState::from_json(*store.text, "x");
    EXPECT_GT(saved.progress.updates, 1);
    Training again(spec, store, &validator);
    EXPECT_TRUE(again.trainer.resume());
    EXPECT_NE(again.trainer.finished_on_all_ranks(), "");
  }
  // An earlier version did not store it.
  auto older = nlohmann::json::parse(*store.text);
  older.erase("validation_seconds");
  EXPECT_EQ(TrainingState::from_json(older.dump(), "x").validation_seconds, 0);
}

TEST_F(TrainerTest, NamesTheMetricThatWasNeverFinite) {
  FakeStore store;
  FakeValidator validator({std::numeric_limits<double>::quiet_NaN()}, false);
  spec.early_stopping = 2;
  Training run(spec, store, &validator);
  EXPECT_EQ(run(), ExitStatus::ok);
  EXPECT_EQ(run.trainer.finished(), "2 validations without a better bleu (early-stopping)");
  EXPECT_FALSE(run.trainer.state().best);
}

TEST_F(TrainerTest, ZeroIsNoStallBeforeTheModelTranslates) {
  FakeStore store;
  FakeValidator validator({0, 0, 0, 0, 0.1, 0, 0.1, 0.1});
  spec.early_stopping = 3;
  spec.after = "1000u";
  Training run(spec, store, &validator);
  EXPECT_EQ(run(), ExitStatus::ok);
  EXPECT_EQ(validator.at.size(), 8u);
  EXPECT_EQ(store.best_updates, (std::vector<std::int64_t>{5, 25}));
}

TEST_F(TrainerTest, StallsHalveTheRate) {
  FakeStore store;
  FakeValidator validator({5, 4, 3, 6, 1});
  spec.lr_decay = 0.5;
  spec.lr_decay_start = {10, 2};
  spec.after = "25u";
  Training run(spec, store, &validator);
  EXPECT_EQ(run(), ExitStatus::ok);
  EXPECT_EQ(run.trainer.state().stalls.decays, 1);
  EXPECT_EQ(run.trainer.state().stalled, 1);
}

// The first decay is that of the validation at update 25.
TEST_F(TrainerTest, ADecayThatAResumedRunBeginsHasNoStepsBehindIt) {
  for (const DecayStrategy strategy : {DecayStrategy::stalled, DecayStrategy::epoch_stalled}) {
    FakeStore store;
    FakeValidator validator({5, 4, 3, 2, 1});
    spec.lr_decay_strategy = strategy;
    spec.lr_decay_start = {1000, 1};
    spec.lr_decay = 0;
    spec.after = "20u";
    Training(spec, store, &validator)();
    spec.lr_decay = 0.5;
    spec.after = "25u";
    Training run(spec, store, &validator);
    EXPECT_TRUE(run.trainer.resume());
    EXPECT_EQ(run.trainer.state().stalled, 3);
    EXPECT_EQ(run.trainer.state().stalls.decays, 0);
    EXPECT_LT(run.trainer.state().stalls.first_epoch, 0);
    EXPECT_EQ(run.trainer.run(), ExitStatus::ok);
    EXPECT_EQ(run.trainer.state().stalls.decays, 1);
    EXPECT_EQ(run.trainer.state().stalls.first_epoch, run.trainer.state().progress.epochs);
  }
}

// Without a warm-up, at a constant schedule, by both strategies: after so many decays an update of
// sgd is that of the full rate times lr_decay^decays, whatever the optimizer keeps.
TEST_F(TrainerTest, EveryOptimizerDecays) {
  for (const auto& [name, params] : optimizers) {
    SCOPED_TRACE(name);
    spec.optimizer = parse_enum<UpdateRule>(name, "optimizer");
    spec.optimizer_params = params;
    spec.schedule = RateSchedule::constant;
    spec.lr_warmup = "";
    spec.lr_decay = 0.5;
    spec.exponential_smoothing = 0;
    const auto moved = [&](bool decays, DecayStrategy strategy) {
      spec.lr_decay_strategy = strategy;
      spec.lr_decay_start = decays ? std::vector<int>{3, 1} : std::vector<int>{1000, 1000};
      // Seven updates are two passes of seven batches: the eighth is the first of epoch 3. The
      // second validation, at update 10, stalls.
      const std::int64_t before = strategy == DecayStrategy::epoch ? 7 : 10;
      FakeStore store;
      FakeValidator validator({5, 4});
      spec.after = fmt::format("{}u", before);
      Training(spec, store, &validator)();
      const FakeStore::Values start = store.weights;
      spec.after = fmt::format("{}u", before + 1);
      Training(spec, store, &validator)();
      std::vector<double> steps;
      for (const auto& [tensor, values] : store.weights)
        for (std::size_t i = 0; i < values.size(); ++i)
          steps.push_back(double{values[i]} - start.at(tensor)[i]);
      return steps;
    };
    for (const DecayStrategy strategy : {DecayStrategy::epoch, DecayStrategy::stalled}) {
      const std::vector<double> full = moved(false, strategy), halved = moved(true, strategy);
      double most = 0;
      for (double step : full) most = std::max(most, std::abs(step));
      EXPECT_GT(most, 1e-6);
      // adamw's decay is times the rate too, so all steps are halved.
      for (std::size_t i = 0; i < full.size(); ++i)
        ASSERT_NEAR(halved[i], full[i] / 2, 2e-7 + 1e-3 * most) << name_of(strategy);
    }
  }
}

TEST_F(TrainerTest, AnotherDevelopmentSetHasNoBestYet) {
  FakeStore store;
  FakeValidator validator({9, 9, 1});
  spec.after = "10u";
  Training(spec, store, &validator)();
  spec.after = "15u";
  Training other(spec, store, &validator, "c", "other");
  other();
  EXPECT_EQ(*other.trainer.state().best, 1);
  EXPECT_EQ(store.best_updates, (std::vector<std::int64_t>{5, 15}));
}

}  // namespace
}  // namespace nmt::train
