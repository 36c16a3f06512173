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

/// How the caller of a training watches and stops it.
struct TrainingControl {
  train::ProgressListener listener;  ///< called with what is logged
  std::function<bool()> stop;        ///< asked between batches; true: save and return
  /// SIGTERM, SIGUSR1 and SIGINT save and return too (train::Signals), once all is prepared.
  bool catch_signals = false;
  std::vector<std::string> command;  ///< for the training's log: the command that runs it
  std::chrono::steady_clock::time_point started =
      std::chrono::steady_clock::now();  ///< where max-minutes counts from
};

/// How a training ended.
struct TrainingResult {
  ExitStatus status =
      ExitStatus::ok;          ///< interrupted or terminated: it was stopped, and can resume
  Progress progress;           ///< over all runs
  std::string best_metric;     ///< the first of valid-metrics
  std::optional<double> best;  ///< its best value; none before a validation
  std::int64_t best_update = 0;
};

/// Trains: makes the model or resumes the one in the model directory, and runs until a stop rule
/// holds or a stop is asked for. The last checkpoint is saved then. Errors: as the parts;
/// (usage): ranks with other settings or other text than the first.
TrainingResult train(PreparedTraining& prepared, const TrainingControl& control = {});

}  // namespace nmt::app
