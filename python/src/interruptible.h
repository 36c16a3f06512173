#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <nanobind/nanobind.h>

namespace nmt::python {

/// A request to stop a call, which another thread may set.
class Stop {
 public:
  void set() noexcept { set_ = true; }
  bool is_set() const noexcept { return set_; }

 private:
  std::atomic<bool> set_{false};
};

inline constexpr std::chrono::milliseconds signal_interval{50};

/// Returns compute(should_stop). It runs in another thread without the GIL, while this thread
/// handles Python's signals. If a handler raises, as that of Ctrl-C does, should_stop() becomes
/// true and the handler's exception is thrown after `compute` has ended.
template <class Compute>
auto interruptible(Stop* stop, Compute&& compute) {
  Stop own;
  Stop& request = stop ? *stop : own;
  std::optional<decltype(compute([] { return false; }))> result;
  std::exception_ptr failed, raised;
  {
    const nanobind::gil_scoped_release released;
    std::mutex mutex;
    std::condition_variable ended;
    bool over = false;
    std::thread worker([&] {
      try {
        result = compute([&] { return request.is_set(); });
      } catch (...) {
        failed = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      over = true;
      ended.notify_one();
    });
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, signal_interval, [&] { return over; })) {
      if (raised) continue;
      lock.unlock();
      const nanobind::gil_scoped_acquire acquired;
      if (PyErr_CheckSignals() != 0) {
        raised = std::make_exception_ptr(nanobind::python_error());
        request.set();
      }
      lock.lock();
    }
    lock.unlock();
    worker.join();
  }
  if (raised) std::rethrow_exception(raised);
  if (failed) std::rethrow_exception(failed);
  return std::move(*result);
}

}  // namespace nmt::python
