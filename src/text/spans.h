#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// What a span of text is that a translation must contain.
enum class SpanKind {
  placeholder,  ///< {name}, {{ name }}, ${name}, %s, %1$s, %(name)s, %name%
  url,          ///< http://, https://, ftp:// or www., in any case, up to white space; no
                ///< punctuation at its end
  email,
  number,  ///< digits, also in groups: 1,000.5, 12:30, 2024-01-31
  marked,  ///< <keep>...</keep>; the markers themselves are dropped
  term     ///< of a glossary
};

/// The kinds that find_spans() looks for.
struct SpanKinds {
  bool placeholders = false, urls = false, emails = false, numbers = false, marked = false;
  bool any() const { return placeholders || urls || emails || numbers || marked; }
};

/// A part of a line and what takes its place in the translation.
struct TextSpan {
  std::size_t begin = 0, end = 0;  ///< bytes of the line
  SpanKind kind = SpanKind::marked;
  std::string text;  ///< the span itself, what is between the markers, or the glossary's target
  bool operator==(const TextSpan&) const = default;
};

/// The spans of a line of UTF-8 from left to right; they do not overlap. Of spans that begin at the
/// same byte, the kind that SpanKinds lists last wins, numbers come last.
std::vector<TextSpan> find_spans(std::string_view line, const SpanKinds& kinds);

/// The line without the markers of its marked spans: what a model reads.
std::string without_markers(std::string_view line, const std::vector<TextSpan>& spans);

/// Whether a translation contains the text of every span at least as often as `spans` does. A
/// placeholder, URL, address or number counts only as a whole: "12" is not in "120". Marked text
/// and terms count as whole words (is_whole_word()). An occurrence serves one span, and occurrences
/// do not overlap; longer texts are looked for first.
bool contains_all(std::string_view translation, const std::vector<TextSpan>& spans);

/// Whether `begin` to `end` is not a part of a longer word on either side. Punctuation, symbols and
/// white space are not part of a word, nor are characters from U+2000 on: most scripts there write
/// without spaces.
bool is_whole_word(std::string_view line, std::size_t begin, std::size_t end);

}  // namespace nmt
