#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nmt {

/// Length of the longest valid UTF-8 prefix (Unicode 15, table 3-7: no overlong forms, no
/// surrogates, nothing above U+10FFFF); text.size() if the whole text is valid.
std::size_t valid_utf8_prefix(std::string_view text);
inline bool is_valid_utf8(std::string_view text) {
  return valid_utf8_prefix(text) == text.size();
}

/// Copies `text` to `out` with every maximal ill-formed subpart replaced by one U+FFFD (Unicode 15,
/// section 3.9, "U+FFFD Substitution of Maximal Subparts", as Python's errors="replace"). Returns
/// the number of replacements.
std::size_t repair_utf8(std::string_view text, std::string& out);

}  // namespace nmt
