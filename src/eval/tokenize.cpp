#include "eval/tokenize.h"

#include "core/error.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <algorithm>

namespace nmt {
namespace {

bool is_digit(char32_t c) {
  return c >= '0' && c <= '9';
}
bool is_period_or_comma(char32_t c) {
  return c == '.' || c == ',';
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::size_t at = text.find(from);
  if (at == std::string::npos) return;
  std::string replaced;
  std::size_t begin = 0;
  for (; at != std::string::npos; at = text.find(from, begin)) {
    replaced.append(text, begin, at - begin).append(to);
    begin = at + from.size();
  }
  text = replaced.append(text, begin);
}

// One pass over adjacent pairs, like a regular expression that matches two characters: a matching
// pair is consumed.
template <class Text, class First, class Second, class Emit>
Text replace_pairs(const Text& in, First first, Second second, Emit emit) {
  Text out;
  out.reserve(in.size() * 2);
  for (std::size_t i = 0; i < in.size();) {
    if (i + 1 < in.size() && first(in[i]) && second(in[i + 1])) {
      emit(out, in[i], in[i + 1]);
      i += 2;
    } else {
      out += in[i++];
    }
  }
  return out;
}

template <class Text, class C>
void both_then_space(Text& out, C a, C b) {
  out += a;
  out += ' ';
  out += b;
  out += ' ';
}
template <class Text, class C>
void space_then_both(Text& out, C a, C b) {
  out += ' ';
  out += a;
  out += ' ';
  out += b;
}

// The ASCII punctuation that mteval-v13a always separates: all except apostrophe, comma, hyphen and
// period.
bool is_separate(unsigned char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

// mteval-v13a.pl, in the order of its rules. Byte-wise, because no rule inspects a non-ASCII
// character.
std::string mteval_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  if (text.find('&') != std::string::npos) {
    replace_all(text, "&quot;", "\"");
    replace_all(text, "&amp;", "&");
    replace_all(text, "&lt;", "<");
    replace_all(text, "&gt;", ">");
  }
  std::string spaced = " ";
  for (const char c : text) {
    if (is_separate(static_cast<unsigned char>(c)))
      spaced.append({' ', c, ' '});
    else
      spaced += c;
  }
  spaced += ' ';
  const auto digit = [](char c) { return is_digit(static_cast<unsigned char>(c)); };
  const auto no_digit = [digit](char c) { return !digit(c); };
  const auto point = [](char c) { return is_period_or_comma(static_cast<unsigned char>(c)); };
  const auto hyphen = [](char c) { return c == '-'; };
  spaced = replace_pairs(spaced, no_digit, point, both_then_space<std::string, char>);
  spaced = replace_pairs(spaced, point, no_digit, space_then_both<std::string, char>);
  return replace_pairs(spaced, digit, hyphen, both_then_space<std::string, char>);
}

// mteval-v14.pl --international-tokenization.
std::u32string mteval_intl(std::string_view line) {
  std::u32string text = decode_utf8(line);
  const auto no_number = [](char32_t c) { return !is_number(c); };
  text = replace_pairs(text, no_number, is_punctuation, both_then_space<std::u32string, char32_t>);
  text = replace_pairs(text, is_punctuation, no_number, space_then_both<std::u32string, char32_t>);
  std::u32string out;
  for (const char32_t c : text) {
    if (is_symbol(c))
      out.append({U' ', c, U' '});
    else
      out += c;
  }
  return out;
}

std::vector<std::string> split(std::u32string_view text) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < text.size();) {
    while (i < text.size() && is_space(text[i])) ++i;
    std::size_t end = i;
    while (end < text.size() && !is_space(text[end])) ++end;
    if (end > i) words.push_back(encode_utf8(text.substr(i, end - i)));
    i = end;
  }
  return words;
}

// As Perl's split on bytes.
std::vector<std::string> split_bytes(std::string_view line) {
  constexpr std::string_view spaces = " \t\n\v\f\r";
  std::vector<std::string> words;
  for (std::size_t i = line.find_first_not_of(spaces); i != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(spaces, i), line.size());
    words.emplace_back(line.substr(i, end - i));
    i = line.find_first_not_of(spaces, end);
  }
  return words;
}

}  // namespace

std::vector<std::string> split_words(std::string_view line) {
  return split(decode_utf8(line));
}

std::string_view without_trailing_space(std::string_view line) {
  while (!line.empty()) {
    std::size_t start = line.size() - 1;
    while (start > 0 && continues_character(line[start])) --start;
    const std::u32string last = decode_utf8(line.substr(start));
    if (last.size() != 1 || !is_space(last[0])) break;
    line = line.substr(0, start);
  }
  return line;
}

std::vector<std::string> tokenize(BleuTokenizer tokenizer, std::string_view line) {
  if (tokenizer == BleuTokenizer::multi_bleu) return split_bytes(line);
  if (tokenizer == BleuTokenizer::intl) return split(mteval_intl(line));
  return split_words(tokenizer == BleuTokenizer::v13a ? mteval_13a(line) : std::string(line));
}

}  // namespace nmt
