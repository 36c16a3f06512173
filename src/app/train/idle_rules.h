#pragma once

#include "app/train/training_spec.h"
#include "config/option.h"

#include <vector>

namespace nmt::app {

/// Adds to the options of nmt-train, bound to `spec`, the idle rules that read units, the
/// architecture or several specs. Rules that need only the same spec are declared with their option
/// (config::fields()). The spec must outlive the options.
void add_idle_rules(std::vector<config::Option>& options, TrainingSpec& spec);

}  // namespace nmt::app
