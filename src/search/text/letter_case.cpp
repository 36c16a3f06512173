#include "search/text/letter_case.h"

#include "text/unicode.h"

#include <cstddef>

namespace nmt {
namespace {

constexpr int min_words_upper = 3, min_words_title = 5;

// Format characters (zero-width, bidirectional, joining, tags), what alters an emoji before it, and
// private use, as in fonts of icons.
bool is_format(char32_t c) {
  return c == 0xAD || c == 0x61C || (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0x20E3 || (c >= 0xE000 && c <= 0xF8FF) ||
         (c >= 0xFE00 && c <= 0xFE0F) || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFB) ||
         c >= 0xE0000;
}

// Of scripts without letter case, which begin with Hebrew in Unicode.
bool is_caseless_letter(char32_t c) {
  constexpr char32_t alef = 0x5D0;
  return c >= alef && is_letter(c) && !is_combining(c);
}

bool is_small(char32_t c) {
  return uppercase_of({&c, 1}) != std::u32string_view(&c, 1);
}
bool is_capital(char32_t c) {
  return lowercase_of({&c, 1}) != std::u32string_view(&c, 1);
}

}  // namespace

bool is_letter(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return !is_punctuation(c) && !is_symbol(c) && !is_number(c) && !is_space(c) && !is_format(c);
}

LetterCase letter_case_of(std::string_view line) {
  const std::u32string text = decode_utf8(line);
  int words = 0, with_capital_first = 0, with_small = 0, capitals_alone = 0;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t letters = 0, small = 0;
    bool capital_first = false;
    for (; i < text.size() && !is_space(text[i]); ++i) {
      const bool capital = is_capital(text[i]), lower = is_small(text[i]);
      if (!capital && !lower) {
        if (is_caseless_letter(text[i])) return LetterCase::mixed;
        continue;
      }
      if (letters++ == 0) capital_first = capital;
      small += lower;
    }
    ++i;
    if (letters == 0) continue;
    ++words;
    with_capital_first += capital_first;
    with_small += small > 0;
    capitals_alone += letters == 1 && capital_first;
  }
  if (words >= min_words_upper && with_small == 0) return LetterCase::upper;
  if (words >= min_words_title && with_capital_first == words &&
      with_small + capitals_alone == words)
    return LetterCase::title;
  return LetterCase::mixed;
}

std::string in_sentence_case(std::string_view line) {
  std::u32string text = lowercase_of(decode_utf8(line));
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_number(text[i])) break;
    if (!is_small(text[i])) continue;
    text.replace(i, 1, capitalized_words_of({&text[i], 1}));
    break;
  }
  return encode_utf8(text);
}

std::string in_case(std::string_view line, LetterCase letter_case) {
  switch (letter_case) {
    case LetterCase::mixed: break;
    case LetterCase::upper: return encode_utf8(uppercase_of(decode_utf8(line)));
    case LetterCase::title: return encode_utf8(capitalized_words_of(decode_utf8(line)));
  }
  return std::string(line);
}

}  // namespace nmt
