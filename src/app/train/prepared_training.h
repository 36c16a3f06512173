#pragma once

#include "app/compute/processes.h"
#include "app/train/tasks/training_task.h"
#include "app/train/training_device.h"
#include "app/train/training_directory.h"
#include "app/train/training_spec.h"
#include "train/heartbeat.h"
#include "train/training_state.h"

#include <memory>
#include <optional>
#include <string>

namespace nmt::app {

/// A training before its model exists: the settings are checked and complete, the device is open,
/// the text and the model directory have been read. Nothing has been written.
struct PreparedTraining {
  /// Also completes `asked` with the values chosen by training text or by the previous run. Errors:
  /// as the parts; (usage): settings that contradict each other or the existing training.
  PreparedTraining(TrainingSpec& asked, Processes& processes);
  PreparedTraining(const PreparedTraining&) = delete;

  train::Communicator& hosts;  ///< the joined processes
  train::Heartbeat heartbeat;
  TrainingDevice device;
  TrainingDirectory directory;
  std::optional<train::TrainingState> before;  ///< the existing training; none: a new one
  std::unique_ptr<TrainingTask> task;          ///< has read the text
  std::string batching_hash;   ///< what determines the batches; a corpus position is valid only if
                               ///< it is unchanged
  std::string relative_after;  ///< of train::TrainingState
  bool extends = false;        ///< of train::Trainer::Parts, as the next one
  std::string changed_metric_options;
  TrainingSpec spec;  ///< complete
};

}  // namespace nmt::app
