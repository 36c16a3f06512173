#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nmt::library {

/// Lines as the models read them: invalid UTF-8 becomes U+FFFD. `first` is the number of lines[0],
/// from 1. Error (data): a line feed, by line number and `name`.
std::vector<std::string> clean(std::span<const std::string> lines, const char* name,
                               std::int64_t first = 1);

}  // namespace nmt::library
