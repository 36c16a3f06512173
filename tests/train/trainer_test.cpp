#include "train/trainer.h"

#include "core/log.h"
#include "model/model.h"
#include "tests/support/engine.h"
#include "train/signals.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include <gtest/gtest.h>
#include <signal.h>

namespace nmt::train {
namespace {

constexpr int vocabulary = 30, batches_a_pass = 7;

// A few fixed batches, in another order every pass.
class FakeSource : public BatchSource {
 public:
  FakeSource() {
    Rng rng(5);
    for (int b = 0; b < batches_a_pass; ++b) {
      std::vector<Ids> sources(4), targets(4);
      for (auto* side : {&sources, &targets})
        for (Ids& ids : *side) {
          ids.resize(2 + rng.below(6));
          for (auto& id : ids) id = static_cast<std::int32_t>(3 + rng.below(vocabulary - 3));
        }
      std::vector<const Ids*> s, t;
      for (int i = 0; i < 4; ++i) s.push_back(&sources[i]), t.push_back(&targets[i]);
      batches_.push_back(make_batch(s, t, 1, 2));
    }
  }
  const Batch& next() override {
    ++given_;
    if (on_next) on_next(given_);
    const std::int64_t at = given_ - 1, pass = at / batches_a_pass;
    return batches_[(at % batches_a_pass + Rng(9, pass).below(batches_a_pass)) % batches_a_pass];
  }
  double epochs() const override { return static_cast<double>(given_) / batches_a_pass; }
  std::string position() const override { return std::to_string(given_); }
  void restore(const std::string& position) override { given_ = std::stoll(position); }
  std::vector<Batch> largest() override { return batches_; }

  std::function<void(std::int64_t)> on_next;

 private:
  std::vector<Batch> batches_;
  std::int64_t given_ = 0;
};

class FakeStore : public CheckpointStore {
 public:
  using Values = std::map<std::string, std::vector<float>>;
  void save(const Checkpoint& c, bool best) override {
    weights = copy(c.weights), state = copy(c.state), text = c.training_state;
    updates.push_back(c.update);
    if (best) best_updates.push_back(c.update);
  }
  std::optional<std::string> newest() override { return text; }
  void load(Checkpoint& into) override {
    for (auto& t : into.weights)
      std::copy_n(weights.at(t.name).begin(), t.tensor.elements(), t.tensor.f32());
    for (auto& t : into.state)
      std::copy_n(state.at(t.name).begin(), t.tensor.elements(), t.tensor.f32());
  }
  Values weights, state;
  std::optional<std::string> text;
  std::vector<std::int64_t> updates, best_updates;

 private:
  static Values copy(const std::vector<NamedTensor>& tensors) {
    Values values;
    for (const auto& t : tensors)
      values[t.name].assign(t.tensor.f32(), t.tensor.f32() + t.tensor.elements());
    return values;
  }
};

class FakeValidator : public Validator {
 public:
  explicit FakeValidator(std::vector<double> values, bool higher_is_better = true)
      : values_(std::move(values)), higher_is_better_(higher_is_better) {}
  ValidationResult validate(const CopyWeights&, const Progress& progress) override {
    at.push_back(progress.updates);
    if (interrupted) {
      interrupted();
      throw Interrupted{};
    }
    const std::size_t i = std::min(at.size(), values_.size()) - 1;
    return {{"bleu", values_[i], higher_is_better_}, {"cross-entropy", 1, false}};
  }
  void dry_run(const CopyWeights&) override { ++dry_runs; }
  std::vector<std::int64_t> at;
  std::function<void()> interrupted;  // asks to stop; then validate() throws
  int dry_runs = 0;

 private:
  std::vector<double> values_;
  bool higher_is_better_;
};

// A training from scratch or, given a store with a checkpoint, resumed.
struct Training {
  explicit Training(const TrainSpec& spec, FakeStore& store_used, Validator* validator = nullptr,
                    const std::string& corpus = "c", const std::string& development = "d")
      : store(store_used),
        model(model_spec(), vocabulary, vocabulary, engine.context, 1),
        trainer(spec, {model, source, validator, store, reporter, heartbeat, corpus, development,
                       "after: 40u", std::chrono::steady_clock::now(), alone(),
                       StopRequest([this] { return stop; })}) {}
  static ModelSpec model_spec() {
    ModelSpec spec;
    spec.type = ModelType::rnnsearch;
    spec.dim_emb = spec.dim_rnn = 8;
    spec.enc_depth = spec.dec_depth = 1;
    spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = 0.2;
    return spec;
  }
  ExitStatus operator()() {
    trainer.resume();
    return trainer.run();
  }
  FakeStore& store;
  test::Engine engine;
  Model model;
  FakeSource source;
  Reporter reporter{""};
  Heartbeat heartbeat{"testing"};
  Signals signals;
  bool stop = false;  // the caller's request
  Trainer trainer;
};

class TrainerTest : public testing::Test {
 protected:
  TrainerTest() {
    log::set_level(log::Level::off);
    spec.learn_rate = 0.01;
    spec.schedule = RateSchedule::inv_sqrt;
    spec.lr_warmup = "10u";
    spec.exponential_smoothing = 0.05;
    spec.optimizer_delay = 2;
    spec.after = "40u";
    spec.disp_freq = "7u";
    spec.valid_freq = "5u";
    spec.early_stopping = 0;
  }
  ~TrainerTest() override { log::set_level(log::Level::info); }
  TrainSpec spec;
};

const std::pair<const char*, std::vector<double>> optimizers[] = {
    {"adam", {}}, {"adamw", {}}, {"adadelta", {}}, {"adagrad", {}}, {"sgd", {}}, {"sgd", {0.9}}};

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
    a.seconds = b.seconds = 0;
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
  ASSERT_GT(seen.size(), 13u);
  EXPECT_EQ(seen[12], 13);
  EXPECT_EQ(seen[13], 9);  // the batch after the checkpoint of update 8
  EXPECT_EQ(run.trainer.state().progress.updates, 40);
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

TEST_F(TrainerTest, GivesUpWhenNoRateHelps) {
  FakeStore store;
  Training run(spec, store);
  run.source.on_next = [&](std::int64_t) {
    run.model.parameters().find("decoder.output_bias")->gradient.f32()[0] =
        std::numeric_limits<float>::quiet_NaN();
  };
  EXPECT_THROW(run(), Error);
}

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
  EXPECT_EQ(run.trainer.state().best_step, 4);
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
  EXPECT_THROW(TrainingState::from_json("{}", "x"), Error);
  EXPECT_THROW(TrainingState::from_json("{\"updates\": \"a\"}", "x"), Error);
  EXPECT_THROW(TrainingState::from_json("", "x"), Error);
}

}  // namespace
}  // namespace nmt::train
