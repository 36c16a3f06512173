#pragma once

#include "app/processes.h"
#include "app/train/training_device.h"
#include "app/train/training_directory.h"
#include "app/train/training_spec.h"
#include "app/train/training_text.h"
#include "train/heartbeat.h"
#include "train/training_state.h"

#include <optional>
#include <string>

namespace nmt::app {

/// A training before its model: the settings are checked and complete, the device is open, the text
/// is read, and the model directory is looked at. Nothing is written yet.
struct PreparedTraining {
  /// Completes `asked` too: what is chosen by the training text, and what the training in the model
  /// directory has chosen. Errors: as the parts; (usage): settings that contradict each other or
  /// the training so far.
  PreparedTraining(TrainingSpec& asked, Processes& processes);
  PreparedTraining(const PreparedTraining&) = delete;

  train::Communicator& hosts;  ///< the processes, as joined
  train::Heartbeat heartbeat;
  TrainingDevice device;
  TrainingDirectory directory;
  std::optional<train::TrainingState> before;  ///< the training so far; none: a new one begins
  TrainingText text;
  std::string batching;  ///< what decides which batches come: a position in others means nothing
  TrainingSpec spec;     ///< complete
};

}  // namespace nmt::app
