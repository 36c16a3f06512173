#pragma once

#include "config/option.h"
#include "config/specs.h"

#include <vector>

namespace nmt::config {

/// The options of one task, which have no effect on models of others.
std::vector<Option> language_model_fields(ModelSpec& spec);
std::vector<Option> tagging_fields(ModelSpec& spec);
std::vector<Option> classification_fields(ModelSpec& spec);

/// Makes the options idle for models of other tasks.
std::vector<Option> options_of(Task task, const ModelSpec& spec, std::vector<Option> options);

}  // namespace nmt::config
