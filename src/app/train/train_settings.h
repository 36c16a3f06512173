#pragma once

#include "config/settings.h"
#include "config/specs.h"
#include "train/resume.h"

#include <string>
#include <vector>

namespace nmt::app {

/// All settings of nmt-train, bound to the field lists.
class TrainSettings {
 public:
  TrainSettings();
  /// The same options for another program.
  TrainSettings(const char* program, const char* usage, const char* summary,
                const char* positional);
  TrainSettings(const TrainSettings&) = delete;

  ModelSpec model;
  DataSpec data;
  TrainSpec train;
  SearchSpec search;  ///< of validation
  ComputeSpec compute = float32_compute();
  config::Settings settings;

  /// Errors (usage): settings that contradict each other.
  void check() const;
  /// Warns of what was set, to something else than its default, and is not looked at beside the
  /// other settings.
  void warn_of_idle() const;
  /// Whether the settings say what is tied to what: without a word nmt-train chooses.
  bool ties_by_hand() const;
  /// What the training in a model directory was started with (TrainingState::settings): its choices
  /// hold where nothing was set now; returns the other differences.
  std::vector<train::ChangedSetting> take_over(const std::string& yaml);

 private:
  std::vector<config::Option> options_;  // made before any value is read: they know the defaults
};

}  // namespace nmt::app
