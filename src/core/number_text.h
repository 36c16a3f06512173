#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nmt {

/// "1:02:03", "12:31" or "7 s".
std::string duration_text(double seconds);
/// "1,234,567"
std::string grouped(std::int64_t number);
/// "1 line", "1,234 lines": a noun whose plural ends in s.
std::string counted(std::int64_t number, std::string_view noun);

}  // namespace nmt
