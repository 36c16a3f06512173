#include "core/thread_pool.h"

#include "core/error.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sched.h>

namespace nmt {
namespace {

using Clock = std::chrono::steady_clock;
using Number = std::atomic<std::int32_t>;  // of a width that the system can wait on

// A step has hundreds of short parallel parts: who waits looks for so long before it sleeps.
// docs/benchmarks/speed.md has the measurements.
constexpr std::chrono::microseconds longest_look{100};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Looks until `seen` holds or the time is over; whether it holds.
template <class Seen>
bool look(std::chrono::nanoseconds time, Seen&& seen) {
  if (seen()) return true;
  if (time.count() <= 0) return false;
  for (const auto end = Clock::now() + time; Clock::now() < end;)
    for (int i = 0; i < 64; ++i) {
      if (seen()) return true;
      relax();
    }
  return seen();
}

int allowed_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

// The parts of a call of run() are taken, each by whoever comes first: its worker, or the caller
// once it has done its own. So a worker that other processes keep from running is not waited for.
// What a part computes depends on its number alone.
struct ThreadPool::State {
  struct alignas(64) Part {
    Number taken{0};  // the call in which it was taken last
  };
  explicit State(int size) : parts(static_cast<std::size_t>(size)) {}
  // Those that were started, should some not start.
  ~State() {
    stop = true;
    begin_call();
    for (std::thread& thread : threads) thread.join();
  }
  std::vector<std::thread> threads;
  std::vector<Part> parts;
  alignas(64) Number calls{0};    // begun so far; counts round and round
  alignas(64) Number pending{0};  // parts of this call that are not done, the caller's left out
  std::atomic<bool> stop{false};
  Function function = nullptr;
  void* context = nullptr;
  std::mutex mutex;
  std::exception_ptr error;

  // Nobody else does this part of this call. Who comes late, when another call has begun, gets
  // nothing.
  bool take(int part, std::int32_t call) {
    Number& taken = parts[static_cast<std::size_t>(part)].taken;
    std::int32_t before = taken.load(std::memory_order_relaxed);
    const auto is_older = [&] {
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(call) -
                                       static_cast<std::uint32_t>(before)) > 0;
    };
    return is_older() && taken.compare_exchange_strong(before, call, std::memory_order_acq_rel);
  }

  void do_part(int part) {
    try {
      function(context, part);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  }
  void part_is_done() {
    if (pending.fetch_sub(1) == 1) pending.notify_one();
  }

  void work(int worker) {
    std::chrono::nanoseconds time = longest_look;
    for (std::int32_t seen = 0;;) {
      if (!look(time, [&] { return calls.load(std::memory_order_acquire) != seen; }))
        calls.wait(seen, std::memory_order_acquire);
      seen = calls.load(std::memory_order_acquire);
      if (stop) return;
      if (take(worker, seen)) {
        do_part(worker);
        part_is_done();
        time = longest_look;
      } else {
        time /= 2;  // it came too late: other processes want the processor
      }
    }
  }

  std::int32_t begin_call() {
    const std::int32_t call = calls.fetch_add(1) + 1;
    calls.notify_all();
    return call;
  }
};

ThreadPool::ThreadPool(int threads) : size_(threads == 0 ? allowed_processors() : threads) {
  NMT_CHECK(size_ >= 1 && size_ <= 1024, "threads: {} is not between 1 and 1024", size_);
  state_ = std::make_unique<State>(size_);
  state_->threads.reserve(static_cast<std::size_t>(size_ - 1));
  for (int worker = 1; worker < size_; ++worker) {
    try {
      state_->threads.emplace_back([state = state_.get(), worker] { state->work(worker); });
    } catch (const std::system_error& error) {
      fail(ExitStatus::failed, "{} threads: only {} could be started: {}", size_, worker,
           error.code().message());
    }
  }
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::run_erased(Function function, void* context) {
  State& s = *state_;
  if (size_ == 1) return function(context, 0);
  s.function = function;
  s.context = context;
  s.pending.store(size_ - 1, std::memory_order_relaxed);
  const std::int32_t call = s.begin_call();
  s.do_part(0);
  for (int part = 1; part < size_; ++part)
    if (s.take(part, call)) {
      s.do_part(part);
      s.part_is_done();
    }
  if (!look(longest_look, [&] { return s.pending.load(std::memory_order_acquire) == 0; }))
    for (std::int32_t left; (left = s.pending.load(std::memory_order_acquire)) != 0;)
      s.pending.wait(left, std::memory_order_acquire);
  if (s.error) std::rethrow_exception(std::exchange(s.error, nullptr));
}

}  // namespace nmt
