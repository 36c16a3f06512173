#include "search/text/letter_case.h"

#include "text/unicode.h"

#include <cstddef>

namespace nmt {
namespace {

constexpr int min_words_upper = 3, min_words_title = 5;

bool is_small(char32_t c) {
  return uppercase_of({&c, 1}) != std::u32string_view(&c, 1);
}
bool is_capital(char32_t c) {
  return lowercase_of({&c, 1}) != std::u32string_view(&c, 1);
}

}  // namespace

LetterCase letter_case_of(std::string_view line) {
  const std::u32string text = decode_utf8(line);
  int words = 0, with_capital_first = 0, with_small = 0, capitals_alone = 0;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t letters = 0, small = 0;
    bool capital_first = false;
    for (; i < text.size() && !is_space(text[i]); ++i) {
      const bool capital = is_capital(text[i]), lower = is_small(text[i]);
      if (!capital && !lower) continue;
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
