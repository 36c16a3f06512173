#pragma once

#include "config/specs.h"

namespace nmt {

/// Checks the settings of a model against each other. Error (usage): the first setting that is out
/// of range or contradicts another, with its value and the allowed values.
void check_model(const ModelSpec& spec);

/// Whether the first decoder layer is conditional (true) or a plain one followed by attention for
/// all steps at once. The architecture resolves `attention-query: auto`.
bool queries_recurrently(const ModelSpec& spec);

}  // namespace nmt
