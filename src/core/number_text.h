#pragma once

#include <cstdint>
#include <string>

namespace nmt {

/// "1:02:03", "12:31" or "7 s".
std::string duration_text(double seconds);
/// "1,234,567"
std::string grouped(std::int64_t number);

}  // namespace nmt
