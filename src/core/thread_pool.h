#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace nmt {

/// The one pool of the process's compute threads; whoever creates it owns the thread count. The
/// caller of run() is worker 0, so a pool of one starts no thread. Not re-entrant: a task never
/// calls run() on its own pool.
class ThreadPool {
 public:
  /// threads >= 1; 0 takes the number of processors this process may use. Error (failed): the
  /// system starts fewer, with how many.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  /// Calls task(worker) once on every worker, 0 <= worker < size(), and returns when all are done.
  /// An exception of any of them is thrown again here.
  template <class Task>
  void run(Task&& task) {
    run_erased([](void* context,
                  int worker) { (*static_cast<std::remove_reference_t<Task>*>(context))(worker); },
               &task);
  }

  /// Splits [0, n) into at most size() contiguous parts, in order, each a multiple of `grain` but
  /// the last, and calls body(begin, end) for each. The split depends on n, grain and size() alone,
  /// so results are reproducible.
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
