#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// Converts between valid UTF-8 and code points.
std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view text);
void append_utf8(std::string& text, char32_t code);
/// The first one of valid UTF-8; 0 of no text.
char32_t code_point(std::string_view text);

bool is_punctuation(char32_t c);  ///< category P
bool is_symbol(char32_t c);       ///< category S
bool is_number(char32_t c);       ///< category N
bool is_combining(char32_t c);    ///< category M
bool is_space(char32_t c);        ///< as Python's str.isspace()

/// Python's str.lower(): simple case mapping, I with dot above (two characters), final sigma.
std::u32string lowercase_of(std::u32string_view text);
/// Python's str.upper(): full case mapping, such as two letters for sharp s.
std::u32string uppercase_of(std::u32string_view text);
/// Every word between white space begins with a title case letter, behind punctuation and symbols;
/// its other letters stay.
std::u32string capitalized_words_of(std::u32string_view text);

}  // namespace nmt
