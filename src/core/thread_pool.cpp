#include "nmt/core/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "nmt/core/error.h"

namespace nmt {
namespace {

// A step has hundreds of short parallel parts: workers spin this long for the next one before they sleep.
constexpr int spins = 4000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

int allowed_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

struct ThreadPool::State {
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<std::uint64_t> generation{0};
  std::atomic<int> pending{0};
  bool stop = false;
  Function function = nullptr;
  void* context = nullptr;
  std::exception_ptr error;

  void call(int worker) {
    try {
      function(context, worker);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  }

  void work(int worker) {
    for (std::uint64_t seen = 0;;) {
      for (int i = 0; i < spins && generation.load(std::memory_order_acquire) == seen; ++i) relax();
      if (generation.load(std::memory_order_acquire) == seen) {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return generation.load(std::memory_order_relaxed) != seen; });
      }
      ++seen;
      if (stop) return;
      call(worker);
      pending.fetch_sub(1, std::memory_order_release);
    }
  }

  void begin_generation() {
    const std::lock_guard lock(mutex);
    generation.fetch_add(1, std::memory_order_release);
    wake.notify_all();
  }
};

ThreadPool::ThreadPool(int threads) : size_(threads == 0 ? allowed_processors() : threads), state_(std::make_unique<State>()) {
  NMT_CHECK(size_ >= 1 && size_ <= 1024, "threads: {} is not between 1 and 1024", size_);
  for (int worker = 1; worker < size_; ++worker)
    state_->threads.emplace_back([state = state_.get(), worker] { state->work(worker); });
}

ThreadPool::~ThreadPool() {
  state_->stop = true;
  state_->begin_generation();
  for (std::thread& thread : state_->threads) thread.join();
}

void ThreadPool::run_erased(Function function, void* context) {
  State& s = *state_;
  if (size_ == 1) return function(context, 0);
  s.function = function;
  s.context = context;
  s.pending.store(size_ - 1, std::memory_order_relaxed);
  s.begin_generation();
  s.call(0);
  for (int i = 0; s.pending.load(std::memory_order_acquire) != 0; ++i)
    if (i < spins) relax(); else std::this_thread::yield();
  if (s.error) std::rethrow_exception(std::exchange(s.error, nullptr));
}

}  // namespace nmt
