#pragma once

#include <string>
#include <string_view>

namespace nmt {

/// The letter case of a whole line.
enum class LetterCase {
  mixed,  ///< any other
  upper,  ///< capitals: three words or more, and no small letter
  title,  ///< five words or more, and each begins with a capital and has a small letter
};

/// Whether it is a letter of any script, or a combining mark of one.
bool is_letter(char32_t c);

/// The case of a line of valid UTF-8; mixed where it has a letter of a script without letter case.
/// Words are separated by white space; numbers and punctuation count as no words, and in a title a
/// capital may be the whole word.
LetterCase letter_case_of(std::string_view line);

/// The line in small letters with a capital as its first letter.
std::string in_sentence_case(std::string_view line);
/// The line in that case; unchanged for `mixed`.
std::string in_case(std::string_view line, LetterCase letter_case);

}  // namespace nmt
