#pragma once

#include <string>

namespace nmt::app {

/// Every architecture of --type with its description, paper and traits: a line and its details
/// each, or one JSON array.
std::string architectures_text();
std::string architectures_json();

}  // namespace nmt::app
