#include "core/nlohmann.h"
#include "trainer_case.h"

#include <cmath>

#include <signal.h>

namespace nmt::train {
namespace {

TEST_F(TrainerTest, ResumesBitForBit) {
  for (const auto& [name, params] : optimizers) {
    SCOPED_TRACE(name);
    spec.optimizer = parse_enum<UpdateRule>(name, "optimizer");
    spec.optimizer_params = params;
    FakeStore whole, parts;
    FakeValidator v1({1.0, 3.0, 2.0}), v2({1.0, 3.0, 2.0});
    EXPECT_EQ(Training(spec, whole, &v1)(), ExitStatus::ok);
    {
      Training first(spec, parts, &v2);
      first.source.on_next = [](std::int64_t given) {
        if (given == 2 * 23) ::raise(SIGTERM);
      };
      EXPECT_EQ(first(), ExitStatus::terminated);
      EXPECT_EQ(first.trainer.state().progress.updates, 23);
    }
    {
      Training second(spec, parts, &v2);
      EXPECT_EQ(second(), ExitStatus::ok);
      EXPECT_EQ(second.trainer.state().progress.updates, 40);
    }
    EXPECT_EQ(whole.weights, parts.weights);
    EXPECT_EQ(whole.state, parts.state);
    EXPECT_EQ(whole.best_updates, parts.best_updates);
    TrainingState a = TrainingState::from_json(*whole.text, "a"),
                  b = TrainingState::from_json(*parts.text, "b");
    a.seconds = b.seconds = a.validation_seconds = b.validation_seconds = 0;
    EXPECT_EQ(a.to_json(), b.to_json());
  }
}

TEST_F(TrainerTest, StopsWhenItsCallerAsksAndResumesBitForBit) {
  FakeStore whole, parts;
  EXPECT_EQ(Training(spec, whole)(), ExitStatus::ok);
  {
    Training first(spec, parts);
    first.source.on_next = [&](std::int64_t given) { first.stop = given >= 2 * 23; };
    EXPECT_EQ(first(), ExitStatus::interrupted);
    EXPECT_EQ(first.trainer.state().progress.updates, 23);
  }
  EXPECT_EQ(Training(spec, parts)(), ExitStatus::ok);
  EXPECT_EQ(whole.weights, parts.weights);
  EXPECT_EQ(whole.state, parts.state);
}

TEST_F(TrainerTest, TheRehearsalChangesNothing) {
  FakeStore store;
  Training run(spec, store);
  std::vector<float> before, after;
  for (const Parameter& p : run.model.parameters().all())
    before.insert(before.end(), p.value.f32(), p.value.f32() + p.shape.elements());
  run.source.on_next = [&](std::int64_t given) {
    if (given > 1) return;
    for (const Parameter& p : run.model.parameters().all()) {
      after.insert(after.end(), p.value.f32(), p.value.f32() + p.shape.elements());
      for (std::int64_t i = 0; i < p.shape.elements(); ++i) ASSERT_EQ(p.gradient.f32()[i], 0.0f);
    }
  };
  run();
  EXPECT_EQ(before, after);
}

TEST_F(TrainerTest, AsksForNoMemoryOnceWarm) {
  FakeStore store;
  Training run(spec, store);
  std::int64_t warm = -1;
  run.source.on_next = [&](std::int64_t given) {
    const std::int64_t now = run.engine.arena.statistics().system_allocations;
    if (given == 2) warm = now;
    if (given > 2) {
      ASSERT_EQ(now, warm) << "in batch " << given;
    }
  };
  run();
  EXPECT_GT(warm, 0);
}

TEST_F(TrainerTest, DividesACostByTokensOrBySentences) {
  spec.optimizer = UpdateRule::sgd;
  spec.schedule = RateSchedule::constant;
  spec.lr_warmup = "0u";
  spec.clip_norm = spec.exponential_smoothing = 0;
  spec.after = "1u";
  std::int64_t tokens = 0, sentences = 0;
  const auto moved = [&](CostType cost_type) {
    spec.cost_type = cost_type;
    FakeStore store;
    Training run(spec, store);
    const Tensor& weight = run.model.parameters().all().front().value;
    const std::vector<float> before(weight.f32(), weight.f32() + weight.elements());
    run();
    tokens = run.trainer.state().progress.labels;
    sentences = 4 * run.trainer.state().batches;
    std::vector<double> difference;
    for (std::size_t i = 0; i < before.size(); ++i)
      difference.push_back(double{weight.f32()[i]} - before[i]);
    return difference;
  };
  const std::vector<double> by_tokens = moved(CostType::ce_mean_words),
                            by_sentences = moved(CostType::ce_mean);
  ASSERT_EQ(sentences, 8);
  ASSERT_GT(tokens, 2 * sentences);
  double largest = 0;
  for (std::size_t i = 0; i < by_tokens.size(); ++i) {
    EXPECT_NEAR(by_sentences[i] * static_cast<double>(sentences),
                by_tokens[i] * static_cast<double>(tokens), 1e-5);
    largest = std::max(largest, std::abs(by_tokens[i]) * static_cast<double>(tokens));
  }
  EXPECT_GT(largest, 1e-3);
}

TEST_F(TrainerTest, AFinishedTrainingSaysSoAndGoesOnWithMore) {
  FakeStore store;
  Training(spec, store)();
  {
    Training again(spec, store);
    EXPECT_TRUE(again.trainer.resume());
    EXPECT_EQ(again.trainer.finished(), "update 40 of 40 (after)");
  }
  spec.after = "2e,50u";
  Training more(spec, store);
  EXPECT_TRUE(more.trainer.resume());
  EXPECT_EQ(more.trainer.finished(), "epoch 11 of 2 (after)");
}

TEST_F(TrainerTest, AnotherCorpusStartsAtItsBeginning) {
  FakeStore store;
  spec.after = "20u";
  Training(spec, store)();
  spec.after = "21u";
  Training other(spec, store, nullptr, "other files");
  std::int64_t first = 0;
  other.source.on_next = [&](std::int64_t given) { first = first ? first : given; };
  other();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(other.trainer.state().progress.updates, 21);
}

// Twenty updates are 40 batches, 5 epochs and 5 batches.
TEST_F(TrainerTest, OtherBatchesOfTheSameTextKeepTheEpochs) {
  FakeStore store;
  FakeValidator validator({3, 2, 1});
  spec.lr_decay = 0.5;
  spec.lr_decay_strategy = DecayStrategy::epoch_stalled;
  spec.lr_decay_start = {100, 1};
  spec.after = "20u";
  const auto run = [&](const char* after, const char* corpus) {
    spec.after = after;
    Training training(spec, store, &validator, corpus);
    training();
    return training.trainer.state();
  };
  const double stalled_at = run("20u", "c batches").stalls.first_epoch;
  EXPECT_GT(stalled_at, 1);
  for (const auto& [after, batches] : {std::pair{"21u", 2}, {"22u", 4}, {"30u", 20}}) {
    const TrainingState state = run(after, "c others");
    EXPECT_DOUBLE_EQ(state.progress.epochs, 5 + batches / 7.0);
    EXPECT_EQ(state.position, std::to_string(batches));
    EXPECT_EQ(state.stalls.first_epoch, stalled_at);
  }
  EXPECT_DOUBLE_EQ(run("31u", "c third").progress.epochs, 7 + 2 / 7.0);
  const TrainingState other = run("32u", "d third");
  EXPECT_DOUBLE_EQ(other.progress.epochs, 2 / 7.0);
  EXPECT_EQ(other.stalls.first_epoch, 0);
  const Schedule schedule(spec);
  EXPECT_DOUBLE_EQ(schedule.rate({100, 2.5, 1000}, other.stalls) * 2,
                   schedule.rate({100, 1.5, 1000}, other.stalls));
}

TEST(TrainingState, TextHashesOfOlderVersionsAreThoseOfNow) {
  TrainingState state;
  state.batching_hash = "old batches";
  state.update_text_hash({.current = "new", .v0_2 = "older"});
  EXPECT_EQ(state.batching_hash, "old batches");
  state.update_text_hash({.current = "new", .v0_2 = "old"});
  EXPECT_EQ(state.batching_hash, "new batches");
  state.update_text_hash({.current = "new", .v0_2 = ""});
  EXPECT_EQ(state.batching_hash, "new batches");
}

TEST(TrainingState, SurvivesJson) {
  TrainingState state;
  state.progress = {123456789012, 1.0 / 3, 987654321987};
  state.best = 0.1;
  state.shown.smoothed = 1e-300;
  state.settings = "a: 1\nb: [x, y]\n";
  state.position = "epoch \"3\"\n";
  const TrainingState back = TrainingState::from_json(state.to_json(), "x");
  EXPECT_EQ(back.progress.epochs, 1.0 / 3);
  EXPECT_EQ(back.position, state.position);
  EXPECT_EQ(back.settings, state.settings);
  EXPECT_EQ(back.to_json(), state.to_json());
  EXPECT_FALSE(back.best_due);
  // An earlier version has no best_due.
  auto older = nlohmann::json::parse(state.to_json());
  older.erase("best_due");
  EXPECT_EQ(TrainingState::from_json(older.dump(), "x").best_due, 0.1);
  // A training that diverges.
  state.shown.cross_entropy = std::numeric_limits<double>::infinity();
  state.shown.alignment = state.shown.cross_entropy;
  state.best = std::numeric_limits<double>::quiet_NaN();
  const TrainingState diverged = TrainingState::from_json(state.to_json(), "x");
  EXPECT_FALSE(std::isfinite(diverged.shown.cross_entropy));
  EXPECT_FALSE(std::isfinite(diverged.shown.alignment));
  EXPECT_FALSE(diverged.best);
  EXPECT_EQ(diverged.position, state.position);
  EXPECT_THROW(TrainingState::from_json("{}", "x"), Error);
  EXPECT_THROW(TrainingState::from_json("{\"updates\": null}", "x"), Error);
  EXPECT_THROW(TrainingState::from_json("{\"updates\": \"a\"}", "x"), Error);
  EXPECT_THROW(TrainingState::from_json("", "x"), Error);
}

}  // namespace
}  // namespace nmt::train
