#pragma once

#include "calls.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <nanobind/nanobind.h>

namespace nmt::python {

/// Returns compute(should_stop), computed without the GIL. The main thread computes in another one
/// and handles Python's signals meanwhile. If a handler raises, as that of Ctrl-C does,
/// should_stop() becomes true and the handler's exception is thrown after `compute` has ended.
template <class Compute>
auto interruptible(Stop* stop, Compute&& compute) {
  Stop own;
  Stop& request = stop ? *stop : own;
  const auto should_stop = [&] { return request.is_set(); };
  if (!is_main_thread()) {
    const Released released(&request);
    return compute(should_stop);
  }
  std::optional<decltype(compute(should_stop))> result;
  std::exception_ptr failed, raised;
  {
    const nanobind::gil_scoped_release released;
    std::mutex mutex;
    std::condition_variable ended;
    bool over = false;
    std::thread worker([&] {
      try {
        result = compute(should_stop);
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
