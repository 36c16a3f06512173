// Trainers of several ranks as threads of this process, beside one that trains alone.
#include "core/log.h"
#include "model/model.h"
#include "tests/support/engine.h"
#include "train/parallel/shared.h"
#include "train/signals.h"
#include "train/trainer.h"

#include <barrier>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

namespace nmt::train {
namespace {

constexpr int vocabulary = 30;

/// What ranks of one process exchange by.
struct Meeting {
  explicit Meeting(int size_) : size(size_), barrier(size_) {}
  const int size;
  std::barrier<> barrier;
  std::mutex mutex;
  std::vector<double> sum;
  std::vector<std::vector<std::int32_t>> given;
  const void* first = nullptr;
};

class ThreadRank : public Communicator {
 public:
  ThreadRank(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return meeting_.size; }
  void barrier() override { meeting_.barrier.arrive_and_wait(); }
  void all_reduce_sum(double* values, std::int64_t n) override { reduce(values, n); }
  void all_reduce_sum(float* values, std::int64_t n) override {
    finish_sums();
    reduce(values, n);
  }
  void begin_sum(float* values, std::int64_t n) override {
    begun_.push_back({values, {values, values + n}});
    if (on_begin) on_begin();
  }
  void finish_sums() override {
    for (const Begun& sum : begun_) {
      const auto n = static_cast<std::int64_t>(sum.before.size());
      EXPECT_EQ(std::memcmp(sum.values, sum.before.data(), sum.before.size() * sizeof(float)), 0)
          << "values changed while they were summed";
      reduce(sum.values, n);
      ++finished;
    }
    begun_.clear();
  }
  std::vector<std::vector<std::int32_t>> all_gather(
      const std::vector<std::int32_t>& mine) override {
    if (rank_ == 0) meeting_.given.resize(static_cast<std::size_t>(size()));
    barrier();
    meeting_.given[static_cast<std::size_t>(rank_)] = mine;
    barrier();
    auto all = meeting_.given;
    barrier();
    return all;
  }
  void broadcast(void* data, std::size_t bytes) override {
    if (rank_ == 0) meeting_.first = data;
    barrier();
    if (rank_ != 0) std::memcpy(data, meeting_.first, bytes);
    barrier();
  }
  void broadcast(float* values, std::int64_t n) override {
    broadcast(static_cast<void*>(values), static_cast<std::size_t>(n) * sizeof(float));
  }
  void abort(int) override { std::terminate(); }
  std::function<void()> on_begin;
  int finished = 0;

 private:
  struct Begun {
    float* values;
    std::vector<float> before;
  };
  template <class T>
  void reduce(T* values, std::int64_t n) {
    if (rank_ == 0) meeting_.sum.assign(static_cast<std::size_t>(n), 0.0);
    barrier();
    {
      const std::lock_guard lock(meeting_.mutex);
      for (std::int64_t i = 0; i < n; ++i) meeting_.sum[static_cast<std::size_t>(i)] += values[i];
    }
    barrier();
    for (std::int64_t i = 0; i < n; ++i)
      values[i] = static_cast<T>(meeting_.sum[static_cast<std::size_t>(i)]);
    barrier();
  }
  Meeting& meeting_;
  int rank_;
  std::vector<Begun> begun_;
};

/// A rank's share of seven fixed batches of 5 pairs, over and over.
class SharedBatches : public BatchSource {
 public:
  explicit SharedBatches(const RankSlice& share) : share_(share) {
    Rng rng(5);
    for (int b = 0; b < 7; ++b) {
      std::vector<Ids> sides[2];
      for (auto& side : sides)
        for (int i = 0; i < 5; ++i) {
          Ids& ids = side.emplace_back(2 + rng.below(6));
          for (auto& id : ids) id = static_cast<std::int32_t>(3 + rng.below(vocabulary - 3));
        }
      std::vector<const Ids*> s, t;
      for (std::size_t i = 0; i < 5; ++i) s.push_back(&sides[0][i]), t.push_back(&sides[1][i]);
      batches_.push_back(make_batch(s, t, 1, 2));
    }
  }
  const Batch& next() override {
    if (on_next) on_next(given_);
    return batch_ = take(batches_[static_cast<std::size_t>(given_++ % 7)], share_);
  }
  double epochs() const override { return static_cast<double>(given_) / 7; }
  std::string position() const override { return std::to_string(given_); }
  void restore(const std::string& position) override { given_ = std::stoll(position); }
  std::vector<Batch> largest() override { return {take(batches_[0], share_)}; }
  std::function<void(std::int64_t)> on_next;

 private:
  RankSlice share_;
  std::vector<Batch> batches_;
  Batch batch_;
  std::int64_t given_ = 0;
};

struct CountingStore : CheckpointStore {
  void save(const Checkpoint& c, bool) override {
    updates.push_back(c.update), texts.push_back(c.training_state);
  }
  std::optional<std::string> newest() override {
    return texts.empty() ? std::nullopt : std::optional(texts.back());
  }
  void load(Checkpoint&) override {}
  bool discard_newest() override {
    if (texts.size() < 2) return false;
    texts.pop_back();
    return true;
  }
  std::vector<std::int64_t> updates;
  std::vector<std::string> texts;
};

/// A heap that refuses the next so many requests.
struct Heap : MemorySource {
  char* allocate(std::size_t bytes) override {
    return refusals > 0 && refusals--
               ? nullptr
               : static_cast<char*>(::operator new (bytes, std::align_val_t{64}));
  }
  void release(char* data) noexcept override { ::operator delete (data, std::align_val_t{64}); }
  int refusals = 0;
};

/// Counts, and is interrupted where told so, as by a signal that rank 0 alone has got.
struct CountingValidator : Validator {
  ValidationResult validate(const CopyWeights&, const Progress& progress) override {
    at.push_back(progress.updates);
    leave_if_stopped(progress.updates);
    return {{"bleu", 1, true}};
  }
  void dry_run(const CopyWeights&) override {
    at.push_back(0);
    leave_if_stopped(0);
  }
  void leave_if_stopped(std::int64_t update) {
    if (update == stop_at) {
      stop = true;
      throw Interrupted{};
    }
  }
  std::vector<std::int64_t> at;
  std::int64_t stop_at = -1;
  bool stop = false;
};

struct Rank {
  Rank(const TrainSpec& spec, const ModelSpec& model_spec, Meeting& meeting, int rank,
       std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now(),
       const std::string& changed_metric_options = "")
      : communicator(meeting, rank),
        store(communicator, rank == 0 ? &kept : nullptr),
        shared(communicator, rank == 0 ? &validator : nullptr),
        heap(new Heap),
        arena(256, std::unique_ptr<MemorySource>(heap)),
        context(make_context(arena, {&pool})),
        model(model_spec, vocabulary, vocabulary, context,
              rank == 0 ? 1 : 2),  // rank 0's weights count
        source({rank, meeting.size}),
        reporter(rank == 0 ? testing::TempDir() + "parallel_test.jsonl" : ""),
        trainer(spec, {model, source, &shared, store, reporter, heartbeat, "c", "d", "", started,
                       communicator, StopRequest([this] { return validator.stop; }), "", "", false,
                       changed_metric_options}) {}
  std::vector<float> weights() {
    std::vector<float> all;
    for (Parameter& p : model.parameters().all())
      all.insert(all.end(), p.value.f32(), p.value.f32() + p.shape.elements());
    return all;
  }
  ThreadRank communicator;
  CountingStore kept;
  SharedStore store;
  CountingValidator validator;
  SharedValidator shared;
  Heap* heap;
  Arena arena;
  ThreadPool pool{1};
  Context context;
  Model model;
  SharedBatches source;
  Reporter reporter;
  Heartbeat heartbeat{"testing"};
  Trainer trainer;
  ExitStatus status = ExitStatus::failed;  // of the run
};

class ParallelTrainer : public testing::Test {
 protected:
  ParallelTrainer() {
    log::set_level(log::Level::off);
    spec.optimizer = UpdateRule::sgd;
    spec.learn_rate = 0.5;
    spec.schedule = RateSchedule::constant;
    spec.clip_norm = 0.7;  // of the first updates
    spec.optimizer_delay = 2;
    spec.after = "12u";
    spec.disp_freq = spec.save_freq = spec.valid_freq = "100u";
    model.type = ModelType::rnnsearch;
    model.dim_emb = model.dim_rnn = 8;
    model.enc_depth = model.dec_depth = 1;
    model.dropout_emb = model.dropout_rnn = model.dropout_readout = 0.2;
  }
  ~ParallelTrainer() override { log::set_level(log::Level::info); }

  using Prepare = std::function<void(Rank&)>;
  std::vector<std::unique_ptr<Rank>> train(int size, const Prepare& prepare = {}) {
    std::remove((testing::TempDir() + "parallel_test.jsonl").c_str());
    meeting = std::make_unique<Meeting>(size);
    std::vector<std::unique_ptr<Rank>> ranks;
    for (int r = 0; r < size; ++r) {
      ranks.push_back(std::make_unique<Rank>(spec, model, *meeting, r));
      if (prepare) prepare(*ranks.back());
    }
    errors.assign(static_cast<std::size_t>(size), "");
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r)
      threads.emplace_back([&, r] {
        try {
          Rank& rank = *ranks[static_cast<std::size_t>(r)];
          rank.status = rank.trainer.run();
        } catch (const Error& error) {
          errors[static_cast<std::size_t>(r)] = error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
    return ranks;
  }
  static void expect_near(Rank& a, Rank& b) {
    const std::vector<float> x = a.weights(), y = b.weights();
    ASSERT_EQ(x.size(), y.size());
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-5);
  }
  TrainSpec spec;
  ModelSpec model;
  std::unique_ptr<Meeting> meeting;
  std::vector<std::string> errors;
};

TEST_F(ParallelTrainer, TrainsAsOne) {
  const auto one = train(1);
  for (const int size : {2, 3, 7}) {  // 7: two have never a sentence
    SCOPED_TRACE(size);
    const auto several = train(size);
    for (int r = 0; r < size; ++r) EXPECT_EQ(errors[static_cast<std::size_t>(r)], "");
    expect_near(*one[0], *several[0]);
    const TrainingState &a = one[0]->trainer.state(), &b = several[0]->trainer.state();
    EXPECT_EQ(a.progress.labels, b.progress.labels);
    EXPECT_EQ(a.shown.tokens, b.shown.tokens);
    EXPECT_NEAR(a.shown.smoothed, b.shown.smoothed, 1e-5 * a.shown.smoothed);
    EXPECT_NEAR(a.shown.norms, b.shown.norms, 1e-5 * a.shown.norms);
    for (const auto& rank : several) {
      EXPECT_EQ(rank->weights(), several[0]->weights());  // bit for bit
      EXPECT_EQ(rank->kept.updates, rank == several[0] ? (std::vector<std::int64_t>{0, 12})
                                                       : std::vector<std::int64_t>{});
    }
  }
}

TEST_F(ParallelTrainer, NotFiniteOnOneRankSkipsOnAll) {
  const auto ranks = train(3, [](Rank& rank) {
    if (rank.communicator.rank() != 1) return;
    rank.source.on_next = [&rank](std::int64_t batch) {
      if (batch == 6)
        rank.model.parameters().find("decoder.output_bias")->gradient.f32()[0] =
            std::numeric_limits<float>::quiet_NaN();
    };
  });
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->trainer.state().progress.updates, 12);
    EXPECT_EQ(rank->trainer.state().batches, 26);  // thirteen updates of two, one of them skipped
    EXPECT_EQ(rank->weights(), ranks[0]->weights());
  }
}

TEST_F(ParallelTrainer, MemoryOfOneRankCutsItsBatchesAlone) {
  const auto one = train(1);
  const auto ranks = train(2, [&](Rank& rank) {
    if (rank.communicator.rank() != 1) return;
    rank.source.on_next = [&](std::int64_t batch) {
      if (batch != 5) return;
      rank.arena.trim();
      rank.heap->refusals = 2;  // the arena asks twice
    };
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  std::ifstream told(testing::TempDir() + "parallel_test.jsonl");
  const std::string events{std::istreambuf_iterator<char>(told), {}};
  EXPECT_NE(events.find("out of memory in a batch at rank 1"), std::string::npos);
  expect_near(*one[0], *ranks[0]);
}

// What is begun to be summed during the backward pass is complete (ThreadRank sees to it), and is
// all but the embeddings.
TEST_F(ParallelTrainer, SumsBeginInTheBackwardPass) {
  spec.after = "3u";
  spec.label_smoothing = 0.1;
  struct Case {
    const char *type, *cell;
    bool tied, context_aware;
  };
  for (const Case& c : {Case{"rnnsearch", "gru", false, false},
                        {"deep", "lrn", true, true},
                        {"gnmt", "lstm", false, false},
                        {"seq2seq", "atr", true, false},
                        {"block", "ssru", true, false}}) {
    SCOPED_TRACE(c.type);
    model.type = parse_enum<ModelType>(c.type, "type");
    model.enc_cell = model.dec_cell = c.cell;
    model.enc_depth = model.dec_depth = model.type == ModelType::rnnsearch ? 1 : 2;
    model.tied_embeddings_all = c.tied;
    model.context_aware = c.context_aware;
    const auto one = train(1), two = train(2);
    expect_near(*one[0], *two[0]);
    for (const auto& rank : two) EXPECT_EQ(rank->communicator.finished, 3 * 2);
  }
}

// Memory runs out on one rank when the sums of an update have begun: they count, and the rest is
// computed once more.
TEST_F(ParallelTrainer, MemoryRunsOutWithinASum) {
  const auto one = train(1);
  for (const int failing : {1, 2, 3, 8}) {
    SCOPED_TRACE(failing);
    int begun = 0;
    const auto ranks = train(2, [&](Rank& rank) {
      if (rank.communicator.rank() != 1) return;
      rank.communicator.on_begin = [&] {
        if (++begun != failing) return;
        rank.arena.trim();
        rank.heap->refusals = 2;
      };
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
    EXPECT_EQ(ranks[1]->heap->refusals, 0);
    std::ifstream told(testing::TempDir() + "parallel_test.jsonl");
    const std::string events{std::istreambuf_iterator<char>(told), {}};
    EXPECT_NE(events.find("out of memory in a batch at rank 1"), std::string::npos);
    expect_near(*one[0], *ranks[0]);
    EXPECT_EQ(ranks[0]->weights(), ranks[1]->weights());
  }
}

// Rank 0 alone hears of a stop request, within a validation: all ranks save and stop.
TEST_F(ParallelTrainer, AStopRequestWithinAValidationStopsAll) {
  spec.valid_freq = "5u";
  for (const std::int64_t stop_at : {0, 5, 12}) {  // in the dry run, by valid-freq, at the end
    SCOPED_TRACE(stop_at);
    const auto ranks = train(3, [&](Rank& rank) { rank.validator.stop_at = stop_at; });
    for (const auto& rank : ranks) {
      EXPECT_EQ(rank->status, ExitStatus::interrupted);
      EXPECT_EQ(rank->trainer.state().progress.updates, stop_at);
      EXPECT_EQ(rank->trainer.state().validation_due, stop_at == 5);
    }
    EXPECT_EQ(ranks[0]->validator.at.back(), stop_at);
    EXPECT_EQ(ranks[0]->kept.updates.back(), stop_at);
    EXPECT_EQ(TrainingState::from_json(ranks[0]->kept.texts.back(), "x").validation_due,
              stop_at == 5);
    EXPECT_TRUE(ranks[1]->validator.at.empty());
  }
}

// The ranks have not started at the same time: rank 0 decides whether the time is over.
TEST_F(ParallelTrainer, TheClockOfRank0Counts) {
  spec.max_minutes = 60;
  const std::string before = train(2)[0]->kept.texts.back();  // its best value is 1
  spec.after = "24u";
  for (const int late : {0, 1}) {
    SCOPED_TRACE(late);
    const auto now = std::chrono::steady_clock::now();
    Meeting together(2);
    std::vector<std::unique_ptr<Rank>> ranks;
    for (const int r : {0, 1})
      ranks.push_back(std::make_unique<Rank>(
          spec, model, together, r, now - std::chrono::hours(r == late ? 2 : 0), "beam-size"));
    ranks[0]->kept.texts = {before};
    std::string over[2];
    std::vector<std::thread> threads;
    for (const std::size_t r : {0, 1})
      threads.emplace_back([&, r] {
        EXPECT_TRUE(ranks[r]->trainer.resume());
        over[r] = ranks[r]->trainer.finished_on_all_ranks();
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(over[0], over[1]);
    EXPECT_EQ(over[0].empty(), late == 1);
    for (const auto& rank : ranks)
      EXPECT_EQ(rank->trainer.state().best, late == 0 ? std::optional(1.0) : std::nullopt);
  }
}

// As rounding does, or as a broken rank does.
TEST_F(ParallelTrainer, RanksThatComeApart) {
  for (const float change : {1e-3f, 30.0f}) {
    const auto ranks = train(2, [&](Rank& rank) {
      if (rank.communicator.rank() != 1) return;
      rank.source.on_next = [&rank, change](std::int64_t batch) {
        if (batch == 6) rank.model.parameters().all().front().value.f32()[0] += change;
      };
    });
    if (change < 1) {
      EXPECT_EQ(ranks[0]->weights(), ranks[1]->weights());
    }
    for (const std::string& error : errors)
      EXPECT_EQ(error.find("ranks have diverged at update 12"), change < 1 ? std::string::npos : 0)
          << error;
  }
}

}  // namespace
}  // namespace nmt::train
