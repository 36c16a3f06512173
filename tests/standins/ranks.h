#pragma once

// Ranks as processes of one machine, with an emulated device each. They exchange tensors through
// the stand-in of NCCL and everything else through memory that they share.

#include "core/error.h"
#include "running.h"
#include "tests/standins/deadline.h"
#include "train/parallel/communicator.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace nmt::test {

constexpr int max_ranks = 4;

/// Memory that this process shares with the processes that it starts.
template <class T>
class SharedMemory {
 public:
  SharedMemory()
      : data_(
            ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    NMT_CHECK(data_ != MAP_FAILED, "no shared memory");
    new (data_) T;
  }
  ~SharedMemory() { ::munmap(data_, sizeof(T)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  T& operator*() const { return *static_cast<T*>(data_); }
  T* operator->() const { return static_cast<T*>(data_); }

 private:
  void* data_;
};

struct HostMeeting {
  static constexpr std::size_t room = std::size_t{1} << 20;
  std::atomic<int> arrived[max_ranks];
  char bytes[2][max_ranks][room];  // of even and odd exchanges
};

/// The hosts of the ranks.
class HostRank : public train::Communicator {
 public:
  HostRank(HostMeeting& meeting, int rank, int size)
      : meeting_(meeting), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void set_timeout(double seconds) override { timeout_ = seconds; }
  void barrier() override {
    exchange(nullptr, 0, [](int, const char*) {});
  }
  void all_reduce_sum(double* values, std::int64_t n) override {
    std::vector<double> sum(static_cast<std::size_t>(n));
    exchange(values, sum.size() * sizeof(double), [&](int, const char* bytes) {
      for (std::size_t i = 0; i < sum.size(); ++i) {
        double value = 0;
        std::memcpy(&value, bytes + i * sizeof value, sizeof value);
        sum[i] += value;
      }
    });
    std::memcpy(values, sum.data(), sum.size() * sizeof(double));
  }
  void all_reduce_sum(float*, std::int64_t) override { NMT_FAIL("a sum of hosts"); }
  void broadcast(float*, std::int64_t) override { NMT_FAIL("a broadcast of hosts"); }
  std::vector<std::vector<std::int32_t>> all_gather(const std::vector<std::int32_t>&) override {
    NMT_FAIL("an exchange of text");
  }
  void broadcast(void* data, std::size_t bytes) override {
    auto* const to = static_cast<char*>(data);
    for (std::size_t at = 0; at < bytes; at += HostMeeting::room) {
      const std::size_t part = std::min(bytes - at, HostMeeting::room);
      exchange(to + at, part, [&](int rank, const char* from) {
        if (rank == 0) std::memcpy(to + at, from, part);
      });
    }
  }
  void abort(int status) override { ::_exit(status); }
  /// How often the ranks have met.
  int meetings() const { return number_; }

 private:
  template <class Take>
  void exchange(const void* own, std::size_t bytes, const Take& take) {
    const int number = ++number_;
    auto& places = meeting_.bytes[number % 2];
    NMT_CHECK(bytes <= HostMeeting::room, "{} bytes", bytes);
    if (bytes > 0) std::memcpy(places[rank_], own, bytes);
    meeting_.arrived[rank_] = number;
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    for (int r = 0; r < size_; ++r)
      while (meeting_.arrived[r] < number) {
        const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
        NMT_CHECK(waited < timeout_, "rank {} did not respond within {:g} s", r, timeout_);
        if (waited > 0.05) emulator::advance_streams();  // a device works meanwhile
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    for (int r = 0; r < size_; ++r) take(r, places[r]);
  }

  HostMeeting& meeting_;
  const int rank_, size_;
  double timeout_ = 120;
  int number_ = 0;
};

/// Runs work(rank) in a process per rank; true where all have returned. Errors go to stderr. A
/// process that waits for ever exits after 300 s.
inline bool in_processes(int size, const std::function<void(int)>& work) {
  std::vector<pid_t> processes;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t process = ::fork();
    if (process == 0) {
      const Deadline limit(300);
      int status = 1;
      try {
        work(rank);
        status = 0;
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      }
      ::_exit(status);
    }
    processes.push_back(process);
  }
  bool fine = true;
  for (const pid_t process : processes) {
    int status = 1;
    fine = ::waitpid(process, &status, 0) == process && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0 && fine;
  }
  return fine;
}

}  // namespace nmt::test
