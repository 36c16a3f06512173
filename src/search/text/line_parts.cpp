#include "search/text/line_parts.h"

#include "search/text/letter_case.h"
#include "text/unicode.h"

#include <algorithm>
#include <string>

namespace nmt {
namespace {

// The bytes of the mark at the end of a text that ends a sentence; 0 where there is none.
std::size_t mark_at_end(std::string_view text) {
  for (const std::string_view mark : {".", "!", "?", "\u3002", "\uff01", "\uff1f"})
    if (text.ends_with(mark)) return mark.size();
  return 0;
}

}  // namespace

LineParts::LineParts(std::string_view line, const std::vector<TextSpan>& spans) {
  const auto add_text = [&](std::string_view text) {
    if (text.empty()) return;
    const std::u32string characters = decode_utf8(text);
    if (std::none_of(characters.begin(), characters.end(), is_letter)) {
      parts.push_back({std::string(text), false});
      return;
    }
    const auto is_text = [](char32_t c) { return !is_space(c); };
    auto begin = characters.begin();
    if (!parts.empty()) {  // the marks behind a span separate it from what follows
      const auto space = std::find_if(begin, characters.end(), is_space);
      if (space != characters.end() && std::none_of(begin, space, is_letter)) begin = space;
    }
    const auto first = std::find_if(begin, characters.end(), is_text);
    const auto last = std::find_if(characters.rbegin(), characters.rend(), is_text).base();
    if (first != characters.begin())
      parts.push_back({encode_utf8({characters.begin(), first}), false});
    parts.push_back({encode_utf8({first, last}), true});
    if (last != characters.end()) parts.push_back({encode_utf8({last, characters.end()}), false});
  };
  std::size_t at = 0;
  for (const TextSpan& span : spans) {
    add_text(line.substr(at, span.begin - at));
    parts.push_back({span.text, false});
    at = span.end;
  }
  add_text(line.substr(at));
}

std::string LineParts::join(const std::vector<std::string>& translations) const {
  std::string line;
  std::size_t next = 0;
  for (const Part& part : parts) {
    if (!part.translate) {
      line += part.text;
      continue;
    }
    std::string_view text = translations.at(next++);
    if (mark_at_end(part.text) == 0)
      while (const std::size_t bytes = mark_at_end(text)) text.remove_suffix(bytes);
    line += text;
  }
  return line;
}

}  // namespace nmt
