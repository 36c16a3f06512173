#include "calls.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include <nmt/error.h>

namespace nb = nanobind;

namespace nmt::python {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds callback_patience{1};

/// The calls of other threads than the main one.
struct Calls {
  std::mutex mutex;
  std::condition_variable changed;
  std::multiset<Stop*> running;
  std::size_t callbacks = 0;  // that run Python code
  bool ending = false;        // no new ones
  bool abandoned = false;     // nobody waits for the running ones any longer
};

Calls* calls = new Calls;  // outlives the threads
unsigned long main_thread = 0;

/// Python 3.14 does the same with threads that take the GIL too late.
void hang_if_abandoned() {
  {
    const std::lock_guard lock(calls->mutex);
    if (!calls->abandoned) return;
  }
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

/// Before the interpreter ends: stops the calls and waits for them. A callback may wait for a
/// thread that has ended already, so callbacks get little time. Ctrl-C ends the wait.
void end_calls() {
  std::exception_ptr raised;
  {
    const nb::gil_scoped_release released;
    std::unique_lock lock(calls->mutex);
    calls->ending = true;
    for (Stop* const stop : calls->running) stop->set();
    const Clock::time_point end = Clock::now() + callback_patience;
    const auto over = [] { return calls->running.empty(); };
    while (!raised && !calls->changed.wait_for(lock, signal_interval, over)) {
      if (calls->callbacks == calls->running.size() && Clock::now() >= end) break;
      lock.unlock();
      {
        const nb::gil_scoped_acquire acquired;
        if (PyErr_CheckSignals() != 0) raised = std::make_exception_ptr(nb::python_error());
      }
      lock.lock();
    }
    calls->abandoned = true;
  }
  if (raised) std::rethrow_exception(raised);
}

/// The threads of the parent are not in its child.
void forget_calls() {
  calls = new Calls;
  main_thread = PyThread_get_thread_ident();
}

}  // namespace

bool is_main_thread() {
  return PyThread_get_thread_ident() == main_thread;
}

Released::Released(Stop* stop) : is_main_(is_main_thread()), stop_(stop ? stop : &own_) {
  if (!is_main_) {
    const std::lock_guard lock(calls->mutex);
    if (calls->ending)
      throw Error(ExitStatus::interrupted, "nmt: the interpreter is ending; no call can begin");
    calls->running.insert(stop_);
  }
  state_ = PyEval_SaveThread();
}

Released::~Released() {
  if (!is_main_) hang_if_abandoned();
  PyEval_RestoreThread(state_);
  if (is_main_) return;
  const std::lock_guard lock(calls->mutex);
  if (const auto own = calls->running.find(stop_); own != calls->running.end())
    calls->running.erase(own);
  calls->changed.notify_all();
}

Callback::Callback(bool is_main) {
  if (!is_main) hang_if_abandoned();
  state_ = PyGILState_Ensure();
  const std::lock_guard lock(calls->mutex);
  ++calls->callbacks;
}

Callback::~Callback() {
  {
    const std::lock_guard lock(calls->mutex);
    --calls->callbacks;
  }
  PyGILState_Release(state_);
}

void bind_calls() {
  const nb::object main = nb::module_::import_("threading").attr("main_thread")();
  main_thread = nb::cast<unsigned long>(main.attr("ident"));
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&end_calls));
  using namespace nb::literals;
  nb::module_::import_("os").attr("register_at_fork")("after_in_child"_a =
                                                          nb::cpp_function(&forget_calls));
}

}  // namespace nmt::python
