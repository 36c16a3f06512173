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

/// Whether a byte of valid UTF-8 is not the first of its character.
inline bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

/// Number of characters (code points) of valid UTF-8.
inline std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += !continues_character(c);
  return count;
}

/// Copies `text` to `out` with every maximal ill-formed subpart replaced by one U+FFFD (Unicode 15,
/// section 3.9, "U+FFFD Substitution of Maximal Subparts", as Python's errors="replace"). Returns
/// the number of replacements.
std::size_t repair_utf8(std::string_view text, std::string& out);

}  // namespace nmt
