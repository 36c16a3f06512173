// The ranks of an mpirun, over MPI. A shared library of its own, which a program opens when mpirun
// has started it.
#include "train/parallel/communicator.h"

#include "core/error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

namespace nmt::train {
namespace {

using Clock = std::chrono::steady_clock;

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  const std::string name(call, std::strcspn(call, "("));
  NMT_FAIL("{}: {}", name, text.data());
}
#define NMT_MPI_CHECK(call) check((call), #call)

constexpr double look_every = 0.2;  // seconds, for ranks that are lost
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Who a rank is. Bytes, since they travel.
struct Identity {
  std::array<char, 64> host{};       // the machine's name
  std::array<char, 64> pid_space{};  // in another one its number would name another process
  long process = 0;
  cpu_set_t processors{};

  static Identity mine() {
    Identity me;
    ::gethostname(me.host.data(), me.host.size() - 1);
    if (::readlink("/proc/self/ns/pid", me.pid_space.data(), me.pid_space.size() - 1) < 0)
      me.pid_space[0] = '\0';
    me.process = ::getpid();
    CPU_ZERO(&me.processors);
    ::sched_getaffinity(0, sizeof me.processors, &me.processors);
    return me;
  }
  bool on_machine_of(const Identity& other) const { return host == other.host; }
  bool has_ended(const Identity& seen_by) const {
    const bool can_tell =
        host == seen_by.host && pid_space == seen_by.pid_space && pid_space[0] != '\0';
    return can_tell && ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH;
  }
};

// Between two looks: first none, since the others mostly come within microseconds; then naps, so
// that a core that waits is free.
class Naps {
 public:
  double waited() const { return seconds_since(start_); }
  void next() {
    const double seconds = waited();
    if (seconds < 50e-6) return;
    const double nap = std::clamp(seconds / 10, 20e-6, 5e-3);
    std::this_thread::sleep_for(std::chrono::duration<double>(nap));
  }

 private:
  Clock::time_point start_ = Clock::now();
};

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator() {
    int given = 0;
    NMT_MPI_CHECK(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given));
    NMT_MPI_CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    NMT_CHECK(given >= MPI_THREAD_FUNNELED,
              "MPI_Init_thread: this MPI does not allow other threads in a process");
    NMT_MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    NMT_MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size_));
    const Identity me = Identity::mine();
    ranks_.resize(static_cast<std::size_t>(size_));
    NMT_MPI_CHECK(MPI_Allgather(&me, sizeof me, MPI_BYTE, ranks_.data(), sizeof me, MPI_BYTE,
                                MPI_COMM_WORLD));
    local_size_ = sharing_ = 0;
    for (int r = 0; r < size_; ++r) {
      const Identity& other = ranks_[static_cast<std::size_t>(r)];
      if (!other.on_machine_of(me)) continue;
      if (r == rank_) local_rank_ = local_size_;
      ++local_size_;
      sharing_ += CPU_EQUAL(&other.processors, &me.processors) ? 1 : 0;
    }
  }
  ~MpiCommunicator() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  int local_size() const override { return local_size_; }
  int sharing() const override { return sharing_; }
  void set_timeout(double seconds) override { timeout_ = seconds; }
  bool has_lost() const override { return has_lost_; }

  void barrier() override { meet(0); }
  void all_reduce_sum(double* values, std::int64_t n) override { reduce(values, n, MPI_DOUBLE); }
  void all_reduce_sum(float* values, std::int64_t n) override { reduce(values, n, MPI_FLOAT); }
  void begin_sum(float* values, std::int64_t n) override {
    in_parts(n, part_bytes / sizeof(float), [&](std::int64_t first, int part) {
      NMT_MPI_CHECK(MPI_Iallreduce(MPI_IN_PLACE, values + first, part, MPI_FLOAT, MPI_SUM,
                                   MPI_COMM_WORLD, &begun_.emplace_back()));
    });
  }
  void advance_sums() override {
    int all = 0;
    if (!begun_.empty())
      NMT_MPI_CHECK(
          MPI_Testall(static_cast<int>(begun_.size()), begun_.data(), &all, MPI_STATUSES_IGNORE));
    if (all) begun_.clear();
  }
  void finish_sums() override {
    for (MPI_Request& request : begun_) transfer(request);
    begun_.clear();
  }
  std::vector<std::vector<std::int32_t>> all_gather(
      const std::vector<std::int32_t>& mine) override {
    std::vector<double> sizes(static_cast<std::size_t>(size_));
    sizes[static_cast<std::size_t>(rank_)] = static_cast<double>(mine.size());
    all_reduce_sum(sizes.data(), size_);
    std::vector<int> counts, offsets;
    double total = 0;
    for (const double size : sizes) {
      counts.push_back(static_cast<int>(size));
      offsets.push_back(static_cast<int>(total));
      total += size;
      NMT_CHECK(total <= INT_MAX, "{} numbers in an exchange between ranks, at most {}", total,
                INT_MAX);
    }
    std::vector<std::int32_t> all(static_cast<std::size_t>(total));
    MPI_Request request = MPI_REQUEST_NULL;
    NMT_MPI_CHECK(MPI_Iallgatherv(mine.data(), counts[static_cast<std::size_t>(rank_)], MPI_INT32_T,
                                  all.data(), counts.data(), offsets.data(), MPI_INT32_T,
                                  MPI_COMM_WORLD, &request));
    transfer(request);
    std::vector<std::vector<std::int32_t>> by_rank;
    for (std::size_t r = 0; r < counts.size(); ++r)
      by_rank.emplace_back(all.begin() + offsets[r], all.begin() + offsets[r] + counts[r]);
    return by_rank;
  }
  void broadcast(void* data, std::size_t bytes) override {
    meet(timeout_);
    in_parts(static_cast<std::int64_t>(bytes), part_bytes, [&](std::int64_t first, int part) {
      MPI_Request request = MPI_REQUEST_NULL;
      NMT_MPI_CHECK(MPI_Ibcast(static_cast<char*>(data) + first, part, MPI_BYTE, 0, MPI_COMM_WORLD,
                               &request));
      transfer(request);
    });
  }
  void broadcast(float* values, std::int64_t n) override {
    broadcast(static_cast<void*>(values), static_cast<std::size_t>(n) * sizeof(float));
  }
  void abort(int status) override {
    MPI_Abort(MPI_COMM_WORLD, status);
    ::_exit(status);
  }

 private:
  static constexpr std::int64_t part_bytes = 1 << 20;  // measured: docs/design/parallel.md
  static constexpr double rank_0_first = 5;            // seconds: it alone knows who is late
  enum : int { arrived = 1, go = 2 };                  // tags

  // body(first, count) for n things, a part at a time.
  template <class Body>
  static void in_parts(std::int64_t n, std::int64_t part, const Body& body) {
    for (std::int64_t first = 0; first < n; first += part)
      body(first, static_cast<int>(std::min(n - first, part)));
  }

  template <class T>
  void reduce(T* values, std::int64_t n, MPI_Datatype type) {
    meet(timeout_);
    in_parts(n, part_bytes / sizeof(T), [&](std::int64_t first, int part) {
      MPI_Request request = MPI_REQUEST_NULL;
      NMT_MPI_CHECK(MPI_Iallreduce(MPI_IN_PLACE, values + first, part, type, MPI_SUM,
                                   MPI_COMM_WORLD, &request));
      transfer(request);
    });
  }

  // Returns when all ranks have come: each tells rank 0, which tells all. So what waits busily is
  // the transfer alone. `limit`: seconds; 0: none.
  void meet(double limit) {
    if (size_ == 1) return;
    if (rank_ != 0) {
      std::vector<MPI_Request> requests(2);
      NMT_MPI_CHECK(MPI_Isend(nullptr, 0, MPI_BYTE, 0, arrived, MPI_COMM_WORLD, &requests[0]));
      NMT_MPI_CHECK(MPI_Irecv(nullptr, 0, MPI_BYTE, 0, go, MPI_COMM_WORLD, &requests[1]));
      await(requests, limit > 0 ? limit + rank_0_first : 0.0);
      return;
    }
    std::vector<MPI_Request> requests(static_cast<std::size_t>(size_) - 1);
    for (int r = 1; r < size_; ++r)
      NMT_MPI_CHECK(MPI_Irecv(nullptr, 0, MPI_BYTE, r, arrived, MPI_COMM_WORLD,
                              &requests[static_cast<std::size_t>(r) - 1]));
    await(requests, limit);
    for (int r = 1; r < size_; ++r)
      NMT_MPI_CHECK(MPI_Isend(nullptr, 0, MPI_BYTE, r, go, MPI_COMM_WORLD,
                              &requests[static_cast<std::size_t>(r) - 1]));
    NMT_MPI_CHECK(MPI_Waitall(size_ - 1, requests.data(), MPI_STATUSES_IGNORE));
  }

  // A transfer goes on while it is looked at. A rank that is lost meanwhile would be waited for
  // without end.
  void transfer(MPI_Request& request) {
    double looked = 0;
    for (const Clock::time_point start = Clock::now();;) {
      int done = 0;
      NMT_MPI_CHECK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      if (done) return;
      const double waited = seconds_since(start);
      if (waited > 1e-3) ::sched_yield();
      if (waited < looked + look_every) continue;
      looked = waited;
      find_lost();
      if (timeout_ > 0 && waited > timeout_) lose(others(), late(timeout_));
    }
  }

  void await(std::vector<MPI_Request>& requests, double limit) {
    double looked = 0;
    Naps naps;
    for (;;) {
      int all = 0;
      NMT_MPI_CHECK(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all,
                                MPI_STATUSES_IGNORE));
      if (all) return;
      naps.next();
      const double waited = naps.waited();
      if (waited < looked + look_every) continue;
      looked = waited;
      find_lost();
      if (limit > 0 && waited > limit) lose(missing(requests), late(limit));
    }
  }

  [[noreturn]] void lose(const std::vector<int>& ranks, const std::string& how) {
    has_lost_ = true;
    NMT_FAIL("{} {}; the last checkpoint is intact", names(ranks), how);
  }

  // Of the ranks of this machine. mpirun ends the others too when one is killed, but not every
  // launcher does.
  void find_lost() {
    std::vector<int> lost;
    for (int r = 0; r < size_; ++r)
      if (ranks_[static_cast<std::size_t>(r)].has_ended(ranks_[static_cast<std::size_t>(rank_)]))
        lost.push_back(r);
    if (!lost.empty()) lose(lost, "exited unexpectedly (killed?)");
  }

  static std::string late(double limit) {
    return fmt::format("did not respond within {:.0f} s (rank-timeout)", limit);
  }
  // Who is late in the middle of an exchange is not known: one of them.
  std::vector<int> others() const {
    std::vector<int> ranks;
    for (int r = 0; r < size_; ++r)
      if (r != rank_) ranks.push_back(r);
    return ranks;
  }

  // Rank 0 waits for a message of each; the others for rank 0's alone.
  std::vector<int> missing(std::vector<MPI_Request>& requests) const {
    if (rank_ != 0) return {0};
    std::vector<int> ranks;
    for (int r = 1; r < size_; ++r)
      if (requests[static_cast<std::size_t>(r) - 1] != MPI_REQUEST_NULL) {
        int has_come = 0;
        NMT_MPI_CHECK(MPI_Request_get_status(requests[static_cast<std::size_t>(r) - 1], &has_come,
                                             MPI_STATUS_IGNORE));
        if (!has_come) ranks.push_back(r);
      }
    return ranks;
  }

  std::string names(const std::vector<int>& ranks) const {
    std::string text;
    for (const int r : ranks) {
      const Identity& who = ranks_[static_cast<std::size_t>(r)];
      text += fmt::format("{}rank {} (process {} on {})", text.empty() ? "" : ", ", r, who.process,
                          who.host.data());
    }
    return text;
  }

  std::vector<MPI_Request> begun_;
  double timeout_ = 0;
  bool has_lost_ = false;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1, sharing_ = 1;
  std::vector<Identity> ranks_;
};

}  // namespace
}  // namespace nmt::train

extern "C" nmt::train::Communicator* nmt_mpi_communicator() {
  return new nmt::train::MpiCommunicator;
}
