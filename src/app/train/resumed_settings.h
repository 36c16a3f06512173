#pragma once

#include "app/train/training_spec.h"
#include "train/resume.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Copies values that the existing training chose to options that are not set in the spec. `yaml`:
/// the settings of that training (TrainingState::settings). Returns the other settings that differ.
/// Errors (usage): as Settings::read_yaml.
std::vector<train::ChangedSetting> take_over(TrainingSpec& spec, const std::string& yaml);

/// Copies the stored values of these options to those that the caller did not set. `yaml`: as in
/// take_over(), with the same errors.
void adopt(TrainingSpec& spec, const std::string& yaml, const std::vector<std::string>& names);

/// The value of --after in stored settings.
std::string earlier_after(const std::string& yaml);
/// The value of --vocabs in stored settings.
std::vector<std::string> earlier_vocabs(const std::string& yaml);

}  // namespace nmt::app
