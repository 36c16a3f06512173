#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nmt::library {

/// Copies lines, replacing invalid UTF-8 by U+FFFD. `first` is the number of lines[0], counted from
/// 1. Error (data): a line contains a line feed; the message has its number and `name`.
std::vector<std::string> clean(std::span<const std::string> lines, const char* name,
                               std::int64_t first = 1);

}  // namespace nmt::library
