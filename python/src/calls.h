#pragma once

#include <atomic>
#include <chrono>

#include <nanobind/nanobind.h>

namespace nmt::python {

inline constexpr std::chrono::milliseconds signal_interval{50};

/// A request to stop a call, which another thread may set.
class Stop {
 public:
  void set() noexcept { set_ = true; }
  bool is_set() const noexcept { return set_; }

 private:
  std::atomic<bool> set_{false};
};

/// Whether this thread handles Python's signals.
bool is_main_thread();

/// Releases the GIL during a call of the library.
///
/// During finalization, Python ends a thread that takes the GIL by unwinding its stack, which C++
/// code does not survive. So the end of the interpreter first stops the calls of other threads than
/// the main one and waits for them. Error (interrupted): the interpreter is ending.
class Released {
 public:
  explicit Released(Stop* stop = nullptr);
  ~Released();
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  const bool is_main_;
  Stop own_;
  Stop* const stop_;
  PyThreadState* state_ = nullptr;
};

/// Takes the GIL during a callback of a call; `is_main`: of the main thread.
class Callback {
 public:
  explicit Callback(bool is_main);
  ~Callback();
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Registers what runs when the interpreter ends or forks.
void bind_calls();

}  // namespace nmt::python
