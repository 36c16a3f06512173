#pragma once

#include "core/log.h"

#include <functional>
#include <string_view>

namespace nmt::log {

/// Receives every line, without level and end, in place of standard error; an empty function
/// restores standard error. Calls do not overlap.
void set_handler(std::function<void(Level level, std::string_view text)> handler);

}  // namespace nmt::log
