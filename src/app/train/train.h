#pragma once

#include "app/train/prepared_training.h"
#include "app/train/training_spec.h"
#include "config/period.h"
#include "core/error.h"
#include "train/reporter.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace nmt::app {

/// How the caller observes and stops a training.
struct TrainingControl {
  train::ProgressListener listener;  ///< called with each log entry
  std::function<bool()> stop;        ///< called between batches; true: save and return
  /// Whether SIGTERM, SIGHUP, SIGUSR1 and SIGINT also save and return (train::Signals).
  bool catch_signals = false;
  std::vector<std::string> command;  ///< command line for the training's log
  std::chrono::steady_clock::time_point started =
      std::chrono::steady_clock::now();  ///< start of max-minutes
};

/// How a training ended.
struct TrainingResult {
  ExitStatus status = ExitStatus::ok;  ///< interrupted or terminated: stopped, and can be resumed
  Progress progress;                   ///< over all runs
  std::string best_metric;             ///< the first of valid-metrics
  std::optional<double> best;          ///< its best value; none before the first validation
  std::int64_t best_update = 0;
};

/// Trains a new model, or resumes the training in the model directory, until a stopping rule
/// applies or a stop is requested. Then it saves the last checkpoint. Errors: as the parts;
/// (usage): settings or text differ between ranks.
TrainingResult train(PreparedTraining& prepared, const TrainingControl& control = {});

}  // namespace nmt::app
