// The calls of NCCL in cuda/libraries/nccl.cpp, against a stand-in whose ranks are processes.

#include "tensor/nccl.h"

#include "core/error.h"
#include "tests/standins/deadline.h"
#include "tests/standins/hooks.h"
#include "tests/support/cuda_fixture.h"

#include <chrono>
#include <cstdio>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace nmt::test {
namespace {

constexpr std::int64_t n = 5;

// A rank with a device and some values.
struct Rank {
  Rank(const Nccl::Id& id, int rank, double timeout = 0) : nccl(device, id, rank, 2, timeout) {
    values = reinterpret_cast<float*>(source->allocate(n * sizeof(float)));
    const std::vector<float> start{1, 2, 3, 4, static_cast<float>(10 * rank)};
    device.to_device(values, start.data(), n * sizeof(float));
  }
  ~Rank() { source->release(reinterpret_cast<char*>(values)); }
  std::vector<float> read() {
    std::vector<float> found(n);
    device.from_device(found.data(), values, n * sizeof(float));
    return found;
  }
  CudaDevice device;
  std::unique_ptr<MemorySource> source = device.memory_source();
  float* values = nullptr;
  Nccl nccl;
};

class Collectives : public NeedsCuda {
 protected:
  void SetUp() override {
    standins::record() = {};
    id = Nccl::new_id();
  }
  void TearDown() override { standins::record() = {}; }
  // Runs rank 1 in another process, which exits with 1 where its work returns false or throws.
  template <class Work>
  void with_other(Work&& work) {
    other = fork();
    if (other != 0) return;
    const Deadline limit(30);
    bool fine = false;
    try {
      fine = work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank 1: %s\n", error.what());
    }
    _exit(fine ? 0 : 1);
  }
  bool other_was_fine() {
    int status = 1;
    return waitpid(other, &status, 0) == other && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  Nccl::Id id{};
  pid_t other = 0;

 private:
  const Deadline limit_{60};  // a host that waits for a lost rank would not return
};

bool sum_and_broadcast(const Nccl::Id& id, int number) {
  Rank rank(id, number);
  rank.nccl.begin_sum(rank.values, n);
  rank.nccl.finish_sums();
  bool good = rank.read() == std::vector<float>{2, 4, 6, 8, 10};
  for (int i = 0; i < 3; ++i) {
    const std::vector<float> own(n, static_cast<float>(number + i));
    rank.device.to_device(rank.values, own.data(), n * sizeof(float));
    rank.nccl.broadcast(rank.values, n);
    good = good && rank.read() == std::vector<float>(n, static_cast<float>(i));
  }
  return good;
}

TEST_F(Collectives, SumAndBroadcast) {
  with_other([&] { return sum_and_broadcast(id, 1); });
  EXPECT_TRUE(sum_and_broadcast(id, 0));
  EXPECT_TRUE(other_was_fine());
}

// Rank 1 has failed before it came to NCCL.
TEST_F(Collectives, WithoutAllRanksDoNotBegin) {
  try {
    const Rank rank(id, 0, 0.3);
    FAIL() << "a rank of two works alone";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "NCCL: the other ranks' GPUs did not respond within 0.3 s");
  }
  EXPECT_EQ(standins::record().calls["ncclCommAbort"], 1);
}

TEST_F(Collectives, ThatFailToBeginAreAborted) {
  standins::record().failures = {{"ncclCommGetAsyncError", 6}};
  EXPECT_THROW(Rank(id, 0), Error);
  EXPECT_EQ(standins::record().calls["ncclCommAbort"], 1);
}

// Rank 1 exits before the sum: the device of rank 0 waits for ever, its host must not.
TEST_F(Collectives, OfALostRankEndInTime) {
  with_other([&] { return Rank(id, 1).values != nullptr; });
  const auto begin = std::chrono::steady_clock::now();
  {
    Rank rank(id, 0);
    EXPECT_TRUE(other_was_fine());
    rank.nccl.set_timeout(0.3);
    rank.nccl.begin_sum(rank.values, n);
    rank.nccl.finish_sums();
    try {
      rank.device.synchronize();
      ADD_FAILURE() << "the sum has ended";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "NCCL: the other ranks' GPUs did not respond within 0.3 s");
    }
    EXPECT_EQ(standins::record().calls["ncclCommAbort"], 1);
    EXPECT_THROW(rank.nccl.begin_sum(rank.values, n), Error);
    rank.device.synchronize();  // nothing waits any more
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

// The driver waits for the whole device before it frees memory; the host must not wait for ever.
TEST_F(Collectives, OfALostRankDoNotHoldMemory) {
  with_other([&] { return Rank(id, 1).values != nullptr; });
  Rank rank(id, 0);
  EXPECT_TRUE(other_was_fine());
  rank.nccl.set_timeout(0.3);
  char* const memory = rank.source->allocate(64);
  rank.nccl.begin_sum(rank.values, n);
  rank.source->release(memory);
  EXPECT_EQ(standins::record().calls["ncclCommAbort"], 1);
  EXPECT_THROW(rank.nccl.begin_sum(rank.values, n), Error);
}

// The same at the end of its communicator, which nothing watches any more.
TEST_F(Collectives, OfALostRankDoNotHoldTheirEnd) {
  for (const bool summed : {true, false}) {
    id = Nccl::new_id();
    with_other([&] { return Rank(id, 1).values != nullptr; });
    CudaDevice device;
    const std::unique_ptr<MemorySource> source = device.memory_source();
    char* const memory = source->allocate(n * sizeof(float));
    auto* const values = reinterpret_cast<float*>(memory);
    {
      Nccl nccl(device, id, 0, 2, 0);
      EXPECT_TRUE(other_was_fine());
      nccl.set_timeout(0.3);
      device.clear(values, n * sizeof(float));
      if (summed)
        nccl.begin_sum(values, n);
      else
        nccl.broadcast(values, n);
    }
    EXPECT_EQ(standins::record().calls["ncclCommAbort"], 1);
    standins::record() = {};
    device.synchronize();
    source->release(memory);
  }
}

// Work that every rank repeats, though one without graphs: the sums are between the graphs. NCCL
// allows a collective in a graph only if it is in one on all ranks; the stand-in refuses it.
TEST_F(Collectives, AreBetweenGraphs) {
  const auto repeated = [](const Nccl::Id& all, int number, bool between) {
    Rank rank(all, number);
    rank.device.set_graphs(number == 0 || !between);
    bool good = true;
    const std::int64_t key[] = {1};
    for (int i = 0; i < 6; ++i)
      rank.device.repeat(key, [&] {
        const std::vector<float> own(n, static_cast<float>(number + i));
        rank.device.to_device(rank.values, own.data(), n * sizeof(float));
        const auto sum = [&] { rank.nccl.begin_sum(rank.values, n); };
        if (between)
          rank.device.between_graphs(key, sum);
        else
          sum();
        rank.device.between_graphs(key, [&] { rank.nccl.finish_sums(); });
        rank.device.copy(rank.values + 1, rank.values, sizeof(float));
      });
    rank.device.synchronize();
    good = good && rank.read() == std::vector<float>(n, 11);
    return good && rank.device.graph_counts().replayed == (number == 0 ? 4 : 0);
  };
  with_other([&] { return repeated(id, 1, true); });
  EXPECT_TRUE(repeated(id, 0, true));
  EXPECT_TRUE(other_was_fine());
  id = Nccl::new_id();
  const auto is_refused = [&](int number) {
    try {
      return repeated(id, number, false) && false;
    } catch (const Error& error) {
      return std::string(error.what()).starts_with("ncclAllReduce");
    }
  };
  with_other([&] { return is_refused(1); });
  EXPECT_TRUE(is_refused(0));
  EXPECT_TRUE(other_was_fine());
}

TEST_F(Collectives, ThatNcclReportsAsFailedEndAtOnce) {
  with_other([&] { return Rank(id, 1).values != nullptr; });
  Rank rank(id, 0);
  EXPECT_TRUE(other_was_fine());
  rank.nccl.begin_sum(rank.values, n);
  rank.nccl.finish_sums();
  standins::record().failures = {{"ncclCommGetAsyncError", 6}};
  try {
    rank.device.synchronize();
    FAIL() << "the sum has ended";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("remote process exited"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace nmt::test
