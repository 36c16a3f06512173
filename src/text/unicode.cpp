#include "text/unicode.h"

#include <algorithm>
#include <iterator>

namespace nmt {
namespace {

struct Range {
  char32_t first, last;
};
struct Pair {
  char32_t from, to;
};
struct Mapping {
  char32_t from, to[3];  // then zeros
};

#include "text/unicode_tables.inc"

template <std::size_t n>
bool within(const Range (&table)[n], char32_t c) {
  const Range* at = std::upper_bound(std::begin(table), std::end(table), c,
                                     [](char32_t x, const Range& r) { return x < r.first; });
  return at != std::begin(table) && c <= std::prev(at)->last;
}

template <class Row, std::size_t n>
const Row* row_of(const Row (&table)[n], char32_t c) {
  const Row* at = std::lower_bound(std::begin(table), std::end(table), c,
                                   [](const Row& row, char32_t x) { return row.from < x; });
  return at != std::end(table) && at->from == c ? at : nullptr;
}

char32_t lower(char32_t c) {
  const Pair* at = row_of(lowercase, c);
  return at ? at->to : c;
}

void append(std::u32string& out, const Mapping& mapping) {
  for (const char32_t c : mapping.to)
    if (c != 0) out += c;
}

void append_upper(std::u32string& out, char32_t c) {
  if (const Mapping* at = row_of(long_uppercase, c)) {
    append(out, *at);
  } else {
    const Pair* simple = row_of(uppercase, c);
    out += simple ? simple->to : c;
  }
}

void append_title(std::u32string& out, char32_t c) {
  if (const Mapping* at = row_of(titlecase, c))
    append(out, *at);
  else
    append_upper(out, c);
}

// The condition Final_Sigma of Unicode 15, table 3-17, as str.lower() applies it.
bool is_final_sigma(std::u32string_view text, std::size_t at) {
  std::size_t i = at;
  while (i > 0 && within(case_ignorable, text[i - 1])) --i;
  if (i == 0 || !within(cased, text[i - 1])) return false;
  i = at + 1;
  while (i < text.size() && within(case_ignorable, text[i])) ++i;
  return i == text.size() || !within(cased, text[i]);
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    char32_t c = length == 1 ? byte : byte & (0x7F >> length);
    for (std::size_t j = 1; j < length && i + j < text.size(); ++j)
      c = c << 6 | (static_cast<unsigned char>(text[i + j]) & 0x3F);
    out.push_back(c);
    i += length;
  }
  return out;
}

void append_utf8(std::string& text, char32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | code >> 6);
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | code >> 12);
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | code >> 18);
    text += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

std::string encode_utf8(std::u32string_view text) {
  std::string out;
  for (const char32_t c : text) append_utf8(out, c);
  return out;
}

bool is_punctuation(char32_t c) {
  return within(punctuation, c);
}
bool is_symbol(char32_t c) {
  return within(symbols, c);
}
char32_t code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) -> char32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  if (byte(0) < 0x80) return byte(0);
  if (byte(0) < 0xE0) return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
  if (byte(0) < 0xF0) return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
}

bool is_combining(char32_t c) {
  return within(marks, c);
}
bool is_number(char32_t c) {
  return within(numbers, c);
}
bool is_space(char32_t c) {
  return within(spaces, c);
}

std::u32string lowercase_of(std::u32string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == 0x130)
      out += U"i\u0307";
    else if (text[i] == 0x3A3)
      out += is_final_sigma(text, i) ? U'\u03C2' : U'\u03C3';
    else
      out += lower(text[i]);
  }
  return out;
}

std::u32string uppercase_of(std::u32string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (const char32_t c : text) append_upper(out, c);
  return out;
}

std::u32string capitalized_words_of(std::u32string_view text) {
  std::u32string out;
  out.reserve(text.size());
  bool at_begin = true;
  for (const char32_t c : text) {
    if (at_begin)
      append_title(out, c);
    else
      out += c;
    at_begin = is_space(c) || (at_begin && (is_punctuation(c) || is_symbol(c)));
  }
  return out;
}

}  // namespace nmt
