#pragma once

#include "app/train/training_spec.h"
#include "config/option.h"

#include <vector>

namespace nmt::app {

/// Gives the options of a training the defaults of a student: greedy search and an architecture of
/// light blocks, SSRU encoders of alternating directions and an SSRU decoder (Kim et al., WNGT
/// 2019), without dropout. `options` are bound to a fresh spec.
void set_student_defaults(std::vector<config::Option>& options);
/// If another architecture was given, resets what it determines to the defaults of nmt-train,
/// except what was given. Sizes, depths and dropout stay.
void unset_student_architecture(TrainingSpec& spec);

}  // namespace nmt::app
