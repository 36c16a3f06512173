#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nmt {

/// Length of the longest prefix that is valid UTF-8 (Unicode 15, table 3-7: no overlong forms, no
/// surrogates, nothing above U+10FFFF); text.size() when all of it is.
std::size_t valid_utf8_prefix(std::string_view text);
inline bool is_valid_utf8(std::string_view text) {
  return valid_utf8_prefix(text) == text.size();
}

/// Writes `text` to `out` with every maximal ill-formed part replaced by one U+FFFD (Unicode 15,
/// section 3.9, "U+FFFD Substitution of Maximal Subparts": what Python's errors="replace" does).
/// Returns the number of replacements.
std::size_t repair_utf8(std::string_view text, std::string& out);

}  // namespace nmt
