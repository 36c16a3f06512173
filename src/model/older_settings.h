#pragma once

#include "config/specs.h"

namespace nmt {

/// Completes settings that were stored with a model or a training by a version without `gate-init`
/// (up to 0.2): no gate starts with a bias, and units have the names of that version
/// (units/renamed.def). Other settings stay as they are.
void update_older_settings(ModelSpec& spec);

}  // namespace nmt
