// Training on several ranks with a device each: the emulator and the stand-in of NCCL. The last
// backward pass of an update, with the sums of the gradients, is replayed.

#include "tests/standins/ranks.h"

#include "core/log.h"
#include "model/model.h"
#include "tensor/copy.h"
#include "tests/device/machine.h"
#include "tests/standins/hooks.h"
#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>

namespace nmt::test {
namespace {

constexpr int updates = 14, steady = 9;  // from this update on everything is replayed
constexpr std::size_t max_weights = std::size_t{1} << 16;

/// What a rank has done at the end of each update.
struct Done {
  std::int64_t waits, meetings, plain, recorded, replayed, misfits;
  std::int64_t graphs, sums, others;  // calls queued in late streams; others but copies and waits
  std::array<std::int64_t, 3> graphs_before;  // the update's sums
};
struct Report {
  char error[512];
  double seconds;  // from the beginning of the last update on
  std::array<Done, updates + 1> done;
  int refusals;  // of memory that are left
  std::size_t count;
  float weights[max_weights];
};

// The name is that of the tests' process in the ranks' processes too.
const std::string& log_file() {
  static const std::string name =
      testing::TempDir() + "ranks_test_" + std::to_string(::getpid()) + ".jsonl";
  return name;
}

struct Case {
  int ranks = 2, delay = 1;
  bool graphs = true;
  const char* model = "rnnsearch gru";
  double timeout = 120;
};

/// The ranks' GPUs, with what a test does before a sum; false: it is left out.
class Gpus : public train::Communicator {
 public:
  Gpus(HostRank& host, CudaDevice& device)
      : host_(host), gpus_(train::over_nccl(host, device, 0)) {}
  int rank() const override { return gpus_->rank(); }
  int size() const override { return gpus_->size(); }
  void set_timeout(double seconds) override { gpus_->set_timeout(seconds); }
  void barrier() override { gpus_->barrier(); }
  void all_reduce_sum(double* values, std::int64_t n) override { gpus_->all_reduce_sum(values, n); }
  void all_reduce_sum(float* values, std::int64_t n) override {
    if (may_begin()) gpus_->all_reduce_sum(values, n);
  }
  void meet_before_sums() override { gpus_->meet_before_sums(); }
  void begin_sum(float* values, std::int64_t n) override {
    if (may_begin()) gpus_->begin_sum(values, n);
  }
  void finish_sums() override { gpus_->finish_sums(); }
  std::vector<std::vector<std::int32_t>> all_gather(
      const std::vector<std::int32_t>& mine) override {
    return gpus_->all_gather(mine);
  }
  void broadcast(void* data, std::size_t bytes) override { gpus_->broadcast(data, bytes); }
  void broadcast(float* values, std::int64_t n) override { gpus_->broadcast(values, n); }
  void abort(int status) override { gpus_->abort(status); }
  std::int64_t meetings() const { return host_.meetings(); }

  std::function<bool(int)> on_sum;  // with the number of the sum, from 1 on
  /// Graphs queued before each of the last three sums.
  std::array<std::int64_t, 3> graphs_before{};

 private:
  bool may_begin() {
    graphs_before[static_cast<std::size_t>(sums_++ % 3)] = emulator::queued_calls()["graph"];
    return !on_sum || on_sum(sums_);
  }
  HostRank& host_;
  std::unique_ptr<train::Communicator> gpus_;
  int sums_ = 0;
};

/// A rank's share of two fixed batches in turn.
class Batches : public train::BatchSource {
 public:
  explicit Batches(const RankSlice& share) : share_(share) {}
  const Batch& next() override {
    if (on_next) on_next(given_);
    return batch_ = take(learnable_batch(static_cast<std::uint64_t>(given_++ % 2), 6, 5), share_);
  }
  double epochs() const override { return 0; }
  std::string position() const override { return std::to_string(given_); }
  void restore(const std::string& position) override { given_ = std::stoll(position); }
  std::vector<Batch> largest() override { return {}; }
  std::function<void(std::int64_t)> on_next;

 private:
  RankSlice share_;
  Batch batch_;
  std::int64_t given_ = 0;
};

struct NoStore : train::CheckpointStore {
  void save(const train::Checkpoint&, bool) override {}
  std::optional<std::string> newest() override { return {}; }
  void load(train::Checkpoint&) override {}
  bool discard_newest() override { return false; }
};

TrainSpec settings(const Case& of) {
  TrainSpec spec;
  spec.optimizer = UpdateRule::sgd;
  spec.learn_rate = 0.5;
  spec.schedule = RateSchedule::constant;
  spec.clip_norm = 0.7;
  spec.optimizer_delay = of.delay;
  spec.after = std::to_string(updates) + "u";
  spec.disp_freq = spec.save_freq = spec.valid_freq = "100u";
  return spec;
}

/// What is in a rank's process.
struct Rank {
  Rank(const Case& of, int number, train::Communicator& hosts)
      : machine(DeviceKind::cuda, of.model),
        model(small_model(of.model), source_size, target_size, machine.context,
              number == 0 ? 1 : 2),  // rank 0's weights count
        source({number, of.ranks}),
        reporter(number == 0 ? log_file() : "") {
    machine.device->set_graphs(of.graphs);
    if (of.ranks > 1) {
      gpus = std::make_unique<Gpus>(dynamic_cast<HostRank&>(hosts), *machine.device);
      gpus->set_timeout(of.timeout);
    }
    trainer.emplace(
        settings(of),
        train::Trainer::Parts{model, source, nullptr, store, reporter, heartbeat, "c", "d", "",
                              std::chrono::steady_clock::now(), gpus ? *gpus : train::alone()});
  }
  Done done() const {
    const GraphCounts graphs = machine.device->graph_counts();
    Done now{machine.device->waits(),
             gpus ? gpus->meetings() : 0,
             graphs.plain,
             graphs.recorded,
             graphs.replayed,
             graphs.misfits,
             0,
             0,
             0,
             gpus ? gpus->graphs_before : std::array<std::int64_t, 3>{}};
    for (const auto& [kind, count] : emulator::queued_calls())
      (kind == "graph"  ? now.graphs
       : kind == "NCCL" ? now.sums
                        : now.others) += kind == "wait" || kind == "copy" ? 0 : count;
    return now;
  }
  std::vector<float> weights() { return weights_of(machine.context, model); }
  Machine machine;
  Model model;
  NoStore store;
  Batches source;
  train::Reporter reporter;
  train::Heartbeat heartbeat{"testing"};
  std::unique_ptr<Gpus> gpus;
  std::optional<train::Trainer> trainer;
};

class TrainingOnRanks : public NeedsCuda {
 protected:
  void SetUp() override {
    NeedsCuda::SetUp();
    log::set_level(log::Level::off);
    std::remove(log_file().c_str());
  }
  void TearDown() override {
    log::set_level(log::Level::info);
    std::remove(log_file().c_str());
  }

  using Prepare = std::function<void(Rank&, int)>;
  using Reports = SharedMemory<std::array<Report, max_ranks>>;
  /// Trains in processes and returns their reports.
  static std::unique_ptr<Reports> train(const Case& of, const Prepare& prepare = {}) {
    auto reports = std::make_unique<Reports>();
    const SharedMemory<HostMeeting> meeting;
    std::remove(log_file().c_str());
    in_processes(of.ranks, [&](int number) {
      Report& report = (**reports)[static_cast<std::size_t>(number)];
      std::chrono::steady_clock::time_point begin;
      try {
        HostRank hosts(*meeting, number, of.ranks);
        hosts.set_timeout(of.timeout);
        Rank rank(of, number, hosts);
        rank.source.on_next = [&](std::int64_t batch) {
          begin = std::chrono::steady_clock::now();
          if (batch % of.delay == 0)
            report.done[static_cast<std::size_t>(batch / of.delay)] = rank.done();
        };
        if (prepare) prepare(rank, number);
        rank.trainer->run();
        report.done[updates] = rank.done();
        report.refusals = rank.machine.refusals;
        const std::vector<float> weights = rank.weights();
        NMT_CHECK(weights.size() <= max_weights, "{} weights", weights.size());
        std::copy(weights.begin(), weights.end(), report.weights);
        report.count = weights.size();
      } catch (const std::exception& error) {
        std::snprintf(report.error, sizeof report.error, "%s", error.what());
      }
      report.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    });
    return reports;
  }
  static std::vector<float> weights(const Report& report) {
    EXPECT_STREQ(report.error, "");
    EXPECT_GT(report.count, 0u);
    return {report.weights, report.weights + report.count};
  }
  // Rank 1 runs out of memory at a sum, or, if negative, in a pass.
  static void expect_split(int failing, const std::array<Report, max_ranks>& one) {
    const auto reports = train({.ranks = 2, .timeout = 20}, [&](Rank& rank, int number) {
      if (number != 1) return;
      const auto take_memory = [&rank] {
        rank.machine.arena->trim();
        rank.machine.refusals = 2;  // the arena asks twice
      };
      rank.gpus->on_sum = [=](int sum) {
        if (sum == failing) take_memory();
        return true;
      };
      rank.source.on_next = [=, before = rank.source.on_next](std::int64_t batch) {
        before(batch);
        if (batch == -failing) take_memory();
      };
    });
    for (std::size_t r = 0; r < 2; ++r) expect_near(weights((**reports)[r]), weights(one[0]));
    EXPECT_EQ(weights((**reports)[0]), weights((**reports)[1]));
    EXPECT_EQ((**reports)[1].refusals, 0);
    std::ifstream told(log_file());
    const std::string events{std::istreambuf_iterator<char>(told), {}};
    EXPECT_NE(events.find("out of memory in a batch at rank 1"), std::string::npos);
  }
  static void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << i;
  }
};

// Bit for bit as without graphs, on all ranks; as one device but for the order of sums.
TEST_F(TrainingOnRanks, GraphsChangeNoBit) {
  for (const Case& of :
       {Case{2, 1}, Case{3, 1}, Case{2, 2}, Case{2, 1, true, "deep olrn norm tied"}}) {
    SCOPED_TRACE(testing::Message()
                 << of.ranks << " ranks, " << of.delay << " batches an update, " << of.model);
    Case one = of, plain = of;
    one.ranks = 1;
    plain.graphs = false;
    const auto alone = train(one), without = train(plain), with = train(of);
    const std::vector<float> expected = weights((**without)[0]);
    for (std::size_t r = 0; r < static_cast<std::size_t>(of.ranks); ++r) {
      SCOPED_TRACE(r);
      EXPECT_EQ(weights((**without)[r]), expected);
      EXPECT_EQ(weights((**with)[r]), expected);
      EXPECT_EQ((**without)[r].done[updates].recorded, 0);
      EXPECT_EQ((**with)[r].done[updates].misfits, 0);
      EXPECT_GT((**with)[r].done[updates].replayed, 0);
    }
    expect_near(weights((**alone)[0]), expected);
  }
}

// A steady update queues its graphs and sums, and nothing else but one upload of host values per
// pass, the download of norm and loss, and the order of the two streams. Its host waits once.
TEST_F(TrainingOnRanks, SteadyUpdatesAreReplayedAndWaitOnce) {
  for (const int delay : {1, 2}) {
    const auto reports = train({.ranks = 2, .delay = delay});
    for (std::size_t r = 0; r < 2; ++r) {
      const Report& report = (**reports)[r];
      ASSERT_STREQ(report.error, "");
      for (std::size_t i = steady; i + 1 < updates; ++i) {  // the last one saves
        SCOPED_TRACE(testing::Message() << "rank " << r << ", update " << i);
        const Done &before = report.done[i], &after = report.done[i + 1];
        EXPECT_EQ(after.plain, before.plain);
        EXPECT_EQ(after.recorded, before.recorded);
        EXPECT_EQ(after.misfits, before.misfits);
        EXPECT_EQ(after.replayed - before.replayed, delay + 2);  // passes, clipping, the update
        EXPECT_EQ(after.waits - before.waits, 1);
        if (!emulator::counters().late_streams) continue;
        EXPECT_EQ(after.graphs - before.graphs, delay - 1 + 3 + 2);
        EXPECT_EQ(after.sums - before.sums, 3);
        EXPECT_EQ(after.others, before.others);
        for (int sum = 0; sum < 3; ++sum)  // each begins when its part of the pass is queued
          EXPECT_EQ(after.graphs_before[static_cast<std::size_t>(sum)] - before.graphs,
                    delay + sum);
      }
      // Of hosts: what follows, before the sums, counts, losses.
      const Done &before = report.done[steady], &after = report.done[steady + 1];
      EXPECT_EQ(after.meetings - before.meetings, 4);
    }
  }
}

// One rank replays while the other does not: the sums are the same.
TEST_F(TrainingOnRanks, RanksNeedNotReplayTogether) {
  const Case of{.ranks = 2};
  const auto same = train(of);
  const auto mixed = train(of, [](Rank& rank, int number) {
    if (number == 1) rank.machine.device->set_graphs(false);
  });
  EXPECT_EQ((**mixed)[1].done[updates].replayed, 0);
  EXPECT_GT((**mixed)[0].done[updates].replayed, 3 * (updates - steady));
  for (std::size_t r = 0; r < 2; ++r) EXPECT_EQ(weights((**mixed)[r]), weights((**same)[0]));
}

// Memory runs out on one rank when it begins a sum in a pass that runs call by call: the sums that
// have begun count, and the rest of the pass is computed again in parts, while the other rank
// waits.
TEST_F(TrainingOnRanks, MemoryRunsOutWithinThePlainPassesOfARank) {
  const auto one = train({.ranks = 1});
  for (const int failing : {1, 2, 3, 4, 5}) {
    SCOPED_TRACE(failing);
    expect_split(failing, **one);
  }
}

// Memory runs out in a pass that is being captured or compared, of which nothing has run yet.
TEST_F(TrainingOnRanks, MemoryRunsOutWithinTheGraphsOfARank) {
  const auto one = train({.ranks = 1});
  for (const int failing : {3, 4, 5, steady}) {
    SCOPED_TRACE(failing);
    expect_split(-failing, **one);
  }
}

// A rank exits when the graph before its first sum has been launched.
TEST_F(TrainingOnRanks, ALostRankEndsTheOthers) {
  const auto reports = train({.ranks = 3, .timeout = 2}, [](Rank& rank, int number) {
    if (number == 1)
      rank.gpus->on_sum = [](int sum) {
        if (sum == 3 * steady + 2) ::_exit(0);
        return true;
      };
  });
  for (const std::size_t r : {std::size_t{0}, std::size_t{2}}) {
    const Report& report = (**reports)[r];
    EXPECT_STREQ(report.error, "rank 1 did not respond within 2 s");
    EXPECT_GE(report.done[steady].replayed, 3);
    EXPECT_LT(report.seconds, 20);
  }
}

// A rank's host is there, but its GPU leaves out a sum: the others' devices wait, their hosts must
// not.
TEST_F(TrainingOnRanks, ALostDeviceEndsTheOthers) {
  const auto reports = train({.ranks = 2, .timeout = 1}, [](Rank& rank, int number) {
    if (number == 1) rank.gpus->on_sum = [](int sum) { return sum <= 3 * steady + 1; };
  });
  EXPECT_STREQ((**reports)[0].error, "NCCL: the other ranks' GPUs did not respond within 1 s");
  EXPECT_STREQ((**reports)[1].error, "rank 0 did not respond within 1 s");
  EXPECT_LT((**reports)[0].seconds, 20);
}

TEST_F(TrainingOnRanks, AFailureThatNcclReportsEndsTheTraining) {
  const auto reports = train({.ranks = 2, .timeout = 2}, [](Rank& rank, int number) {
    rank.gpus->on_sum = [number](int sum) {
      if (sum != 3 * steady + 2) return true;
      if (number == 0) standins::record().failures = {{"ncclCommGetAsyncError", 6}};
      return number == 0;
    };
  });
  const std::string error = (**reports)[0].error;
  EXPECT_NE(error.find("remote process exited"), std::string::npos) << error;
}

}  // namespace
}  // namespace nmt::test
