#include "core/threads/thread_pool.h"

#include "core/error.h"
#include "core/math/flush_subnormals.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace nmt {
namespace {

using Clock = std::chrono::steady_clock;
using Number = std::atomic<std::int32_t>;  // std::atomic::wait() maps to a futex at this width

// A training step runs hundreds of short parallel sections, so waiting threads spin for this long
// before they sleep. docs/benchmarks/speed.md has the measurements.
constexpr std::chrono::microseconds spin_time{100};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Spins until `seen` returns true or the time is over. Returns whether `seen` returned true.
template <class Seen>
bool spin_until(std::chrono::nanoseconds time, Seen&& seen) {
  if (seen()) return true;
  if (time.count() <= 0) return false;
  for (const auto end = Clock::now() + time; Clock::now() < end;)
    for (int i = 0; i < 64; ++i) {
      if (seen()) return true;
      relax();
    }
  return seen();
}

}  // namespace

int allowed_processors() {
  // The kernel refuses (EINVAL) a set that is too small for the machine.
  for (int processors = CPU_SETSIZE; processors <= 1 << 20; processors *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(processors), [](cpu_set_t* allocated) { CPU_FREE(allocated); });
    const std::size_t bytes = CPU_ALLOC_SIZE(processors);
    if (set && sched_getaffinity(0, bytes, set.get()) == 0)
      return std::min(CPU_COUNT_S(bytes, set.get()), ThreadPool::max_threads);
    if (errno != EINVAL) break;
  }
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1,
                    ThreadPool::max_threads);
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

// run() has one part per worker. A part is claimed either by its worker or by the caller once the
// caller has finished its own part, so run() does not wait for a worker that the system has not
// scheduled. The result of a part depends only on its number.
struct ThreadPool::State {
  struct alignas(64) Part {
    Number claimed{0};  // the latest call in which it was claimed
  };
  explicit State(int size) : parts(static_cast<std::size_t>(size)) {}
  // Also joins the threads already started when the constructor of ThreadPool throws.
  ~State() {
    stop = true;
    begin_call();
    for (std::thread& thread : threads) thread.join();
  }
  const pid_t maker = ::getpid();
  std::vector<std::thread> threads;
  std::vector<Part> parts;
  alignas(64) Number calls{0};  // number of calls so far; wraps around
  // Unfinished parts of this call, except the caller's own.
  alignas(64) Number pending{0};
  std::atomic<bool> stop{false};
  Function function = nullptr;
  void* context = nullptr;
  FlushSubnormals::Control control{};  // of the caller: a part has the same bits on every thread
  std::mutex mutex;
  std::exception_ptr error;

  // Claims a part of a call. Fails when it has been claimed already, or when a later call has
  // begun.
  bool claim(int part, std::int32_t call) {
    Number& claimed = parts[static_cast<std::size_t>(part)].claimed;
    std::int32_t before = claimed.load(std::memory_order_relaxed);
    const auto is_older = [&] {
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(call) -
                                       static_cast<std::uint32_t>(before)) > 0;
    };
    return is_older() && claimed.compare_exchange_strong(before, call, std::memory_order_acq_rel);
  }

  void do_part(int part) {
    try {
      function(context, part);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  }
  void finish_part() {
    if (pending.fetch_sub(1) == 1) pending.notify_one();
  }

  void work(int worker) {
    std::chrono::nanoseconds time = spin_time;
    for (std::int32_t seen = 0;;) {
      if (!spin_until(time, [&] { return calls.load(std::memory_order_acquire) != seen; }))
        calls.wait(seen, std::memory_order_acquire);
      seen = calls.load(std::memory_order_acquire);
      if (stop) return;
      if (claim(worker, seen)) {
        FlushSubnormals::set_control(control);
        do_part(worker);
        finish_part();
        time = spin_time;
      } else {
        time /= 2;  // the caller was faster: other processes compete for this processor
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
  NMT_CHECK(size_ >= 1 && size_ <= max_threads, "invalid number of threads {}: expected 1 to {}",
            size_, max_threads);
  state_ = std::make_unique<State>(size_);
  state_->threads.reserve(static_cast<std::size_t>(size_ - 1));
  for (int worker = 1; worker < size_; ++worker) {
    try {
      state_->threads.emplace_back([state = state_.get(), worker] { state->work(worker); });
    } catch (const std::system_error& error) {
      fail(ExitStatus::failed, "cannot start {} threads, only {}: {}", size_, worker,
           error.code().message());
    }
  }
}

// The child of a fork has no threads to join.
ThreadPool::~ThreadPool() {
  if (state_ && state_->maker != ::getpid()) static_cast<void>(state_.release());
}

void ThreadPool::run_erased(Function function, void* context) {
  State& s = *state_;
  if (size_ == 1) return function(context, 0);
  s.function = function;
  s.context = context;
  s.control = FlushSubnormals::control();
  s.pending.store(size_ - 1, std::memory_order_relaxed);
  const std::int32_t call = s.begin_call();
  s.do_part(0);
  for (int part = 1; part < size_; ++part)
    if (s.claim(part, call)) {
      s.do_part(part);
      s.finish_part();
    }
  if (!spin_until(spin_time, [&] { return s.pending.load(std::memory_order_acquire) == 0; }))
    for (std::int32_t left; (left = s.pending.load(std::memory_order_acquire)) != 0;)
      s.pending.wait(left, std::memory_order_acquire);
  if (s.error) std::rethrow_exception(std::exchange(s.error, nullptr));
}

}  // namespace nmt
