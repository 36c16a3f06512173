#pragma once

#include "app/train/training_spec.h"
#include "train/resume.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Takes over what the training in a model directory chose for itself, where the spec says nothing
/// of it. `yaml`: the settings that it was started with (TrainingState::settings). Returns the
/// other settings that differ. Errors (usage): as Settings::read_yaml.
std::vector<train::ChangedSetting> take_over(TrainingSpec& spec, const std::string& yaml);

}  // namespace nmt::app
