#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace nmt {

/// Number of processors that this process may run on, at most ThreadPool::max_threads.
int allowed_processors();
/// The processor's name from /proc/cpuinfo; "" if unknown.
std::string processor();

/// The pool of compute threads of a process. The thread that calls run() is worker 0, so a pool of
/// size 1 starts no thread. Not re-entrant: a task must not call run() on its own pool.
class ThreadPool {
 public:
  static constexpr int max_threads = 1024;
  /// `threads` >= 1; 0 uses all processors that this process may run on. Error (failed): the system
  /// cannot start this many threads; the message gives the number started.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  /// Calls task(worker) once on every worker, 0 <= worker < size(), and returns when all calls have
  /// returned. Rethrows the first exception of any of them.
  template <class Task>
  void run(Task&& task) {
    run_erased([](void* context,
                  int worker) { (*static_cast<std::remove_reference_t<Task>*>(context))(worker); },
               &task);
  }

  /// Splits [0, n) into at most size() contiguous ranges and calls body(begin, end) for each. Every
  /// range but the last is a multiple of `grain`. The split depends only on n, grain and size(), so
  /// results are reproducible.
  template <class Body>
  void parallel_for(std::int64_t n, std::int64_t grain, Body&& body) {
    const std::int64_t blocks = (n + grain - 1) / grain;
    if (size_ == 1 || blocks <= 1) {
      if (n > 0) body(std::int64_t{0}, n);
      return;
    }
    run([&](int worker) {
      const std::int64_t begin = blocks * worker / size_ * grain,
                         end = blocks * (worker + 1) / size_ * grain;
      if (begin < n && begin < end) body(begin, end < n ? end : n);
    });
  }

 private:
  using Function = void (*)(void*, int);
  void run_erased(Function function, void* context);
  struct State;
  int size_;
  std::unique_ptr<State> state_;
};

}  // namespace nmt
