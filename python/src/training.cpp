#include "bindings.h"
#include "calls.h"

#include <chrono>
#include <exception>

#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nmt/trainer.h>

namespace nb = nanobind;

namespace nmt::python {
namespace {

using Words = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

/// Whether the answer of a callback stops the training: False does, None does not.
bool goes_on(const nb::object& answer) {
  return answer.is_none() || nb::cast<bool>(nb::bool_(answer));
}

/// Handles Python's signals between updates of a training in the main thread. If a handler raises,
/// the training stops and saves, and the exception is thrown afterwards.
class SignalCheck {
 public:
  /// Whether a handler has raised, or the interpreter ends.
  bool operator()() {
    if (!is_main_) return stop.is_set();
    const Clock::time_point now = Clock::now();
    if (raised_ || now - last_ < signal_interval) return raised_ != nullptr;
    last_ = now;
    const nb::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() != 0) raised_ = std::make_exception_ptr(nb::python_error());
    return raised_ != nullptr;
  }
  /// Whether a callback lets the training go on. A Ctrl-C during the callback counts as one between
  /// updates; other exceptions pass.
  template <class Value>
  bool call(const nb::object& callback, const Value& value) {
    const Callback acquired(is_main_);
    try {
      return goes_on(callback(value));
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_KeyboardInterrupt)) throw;
      raised_ = std::current_exception();
      return false;
    }
  }
  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

  Stop stop;

 private:
  const bool is_main_ = is_main_thread();
  Clock::time_point last_ = Clock::now();
  std::exception_ptr raised_;
};

TrainResult train(const Settings& settings, const Words& train_sets, const Words& valid_sets,
                  const Words& vocabs, const std::string& model, const nb::object& progress,
                  const nb::object& validation) {
  TrainOptions options;
  options.train_sets = train_sets;
  options.valid_sets = valid_sets;
  options.vocabs = vocabs;
  options.model = model;
  options.settings = settings;
  TrainCallbacks callbacks;
  SignalCheck signals;
  if (!progress.is_none())
    callbacks.on_progress = [&](const TrainProgress& value) {
      return signals.call(progress, value);
    };
  if (!validation.is_none())
    callbacks.on_validation = [&](const Validation& value) {
      return signals.call(validation, value);
    };
  callbacks.should_stop = [&] { return signals(); };
  TrainResult result;
  {
    const Released released(&signals.stop);
    result = train_model(options, callbacks);
  }
  signals.rethrow();
  return result;
}

}  // namespace

void bind_training(nb::module_& module) {
  nb::class_<TrainProgress>(module, "TrainProgress", "Progress of a training.")
      .def_ro("updates", &TrainProgress::updates)
      .def_ro("target_tokens", &TrainProgress::target_tokens, "Trained on, </s> included.")
      .def_ro("epochs", &TrainProgress::epochs)
      .def_ro("loss", &TrainProgress::loss, "Label-smoothed, nats per target token.")
      .def_ro("perplexity", &TrainProgress::perplexity, "Per target token.")
      .def_ro("learn_rate", &TrainProgress::learn_rate)
      .def_ro("target_tokens_per_second", &TrainProgress::target_tokens_per_second)
      .def_ro("seconds", &TrainProgress::seconds, "Wall time over all runs.")
      .def_ro("seconds_left", &TrainProgress::seconds_left, "Estimated from the stopping rules.");
  nb::class_<Validation>(module, "Validation", "The result of a validation.")
      .def_ro("updates", &Validation::updates)
      .def_ro("epochs", &Validation::epochs)
      .def_prop_ro(
          "metrics",
          [](const Validation& self) {
            nb::dict values;
            for (const auto& [name, value] : self.metrics) values[name.c_str()] = value;
            return values;
          },
          nb::sig("def metrics(self) -> dict[str, float]"), "In the order of valid_metrics.")
      .def_ro("best", &Validation::best, "The first metric is the best so far.");
  nb::class_<TrainResult>(module, "TrainResult", "How a training ended.")
      .def_ro("finished", &TrainResult::finished,
              "True: a stopping rule applied. False: a callback stopped it.")
      .def_ro("updates", &TrainResult::updates)
      .def_ro("best_metric", &TrainResult::best_metric, "\"\" before the first validation.")
      .def_ro("best", &TrainResult::best, "The best value of that metric.")
      .def_ro("best_update", &TrainResult::best_update);
  module.def("train", &train, nb::arg("settings"), nb::arg("train_sets"), nb::arg("valid_sets"),
             nb::arg("vocabs"), nb::arg("model"), nb::arg("progress").none(),
             nb::arg("validation").none());
}

}  // namespace nmt::python
