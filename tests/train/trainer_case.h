#pragma once

#include "core/log.h"
#include "model/model.h"
#include "tests/support/engine.h"
#include "train/signals.h"
#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

// A trainer with a small model, fixed batches, a store in memory and a validator whose values are
// given.

namespace nmt::train {

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
    std::this_thread::sleep_for(takes);
    if (text) older.push_back({weights, state, *text});
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
  bool discard_newest() override {
    if (!keeps_older || older.empty()) return false;
    discarded.push_back(TrainingState::from_json(*text, "the newest").progress.updates);
    std::tie(weights, state, text) = older.back();
    older.pop_back();
    return true;
  }
  Values weights, state;
  std::optional<std::string> text;
  std::vector<std::int64_t> updates, best_updates, discarded;
  bool keeps_older = true;
  std::chrono::milliseconds takes{0};  // a save

 private:
  std::vector<std::tuple<Values, Values, std::string>> older;
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
    if (interrupted && std::ssize(at) >= interrupted_at) {
      interrupted();
      throw Interrupted{};
    }
    std::this_thread::sleep_for(at.size() == 1 ? takes : then_takes.value_or(takes));
    const std::size_t i = std::min(at.size(), values_.size()) - 1;
    return {{"bleu", values_[i], higher_is_better_}, {"cross-entropy", 1, false}};
  }
  void dry_run(const CopyWeights&) override { ++dry_runs; }
  std::vector<std::int64_t> at;
  std::function<void()> interrupted;   // asks to stop; then validate() throws
  std::int64_t interrupted_at = 1;     // call of validate() from which it is asked
  std::chrono::milliseconds takes{0};  // a validation
  std::optional<std::chrono::milliseconds> then_takes = std::nullopt;  // those after the first
  int dry_runs = 0;

 private:
  std::vector<double> values_;
  bool higher_is_better_;
};

// A model that counts how often its states begin again.
struct CountingModel : Model {
  using Model::Model;
  void forget_states() override { ++forgotten; }
  int forgotten = 0;
};

// A training from scratch or, given a store with a checkpoint, resumed.
struct Training {
  explicit Training(const TrainSpec& spec, FakeStore& store_used, Validator* validator = nullptr,
                    const std::string& corpus = "c", const std::string& development = "d",
                    const std::string& changed_metric_options = "")
      : store(store_used),
        model(model_spec(), vocabulary, vocabulary, engine.context, 1),
        trainer(spec,
                {model, source, validator, store, reporter, heartbeat, corpus, development,
                 "after: 40u", std::chrono::steady_clock::now(), alone(),
                 StopRequest([this] { return stop; }), "", "", false, changed_metric_options}) {}
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
  CountingModel model;
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

inline const std::pair<const char*, std::vector<double>> optimizers[] = {
    {"adam", {}}, {"adamw", {}}, {"adadelta", {}}, {"adagrad", {}}, {"sgd", {}}, {"sgd", {0.9}}};

}  // namespace nmt::train
