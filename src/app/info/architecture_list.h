#pragma once

#include <string>

namespace nmt::app {

/// All architectures of --type with description, paper and traits, as text or as a JSON array.
std::string architectures_text();
std::string architectures_json();

}  // namespace nmt::app
