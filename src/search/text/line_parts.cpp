#include "search/text/line_parts.h"

#include "text/unicode.h"

#include <algorithm>
#include <string>

namespace nmt {
namespace {

// Zero-width, bidirectional and joining characters, and what alters an emoji before it.
bool is_format(char32_t c) {
  return c == 0xAD || (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0x20E3 || (c >= 0xFE00 && c <= 0xFE0F) || c == 0xFEFF;
}

bool is_letter(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return !is_punctuation(c) && !is_symbol(c) && !is_number(c) && !is_space(c) && !is_format(c);
}

bool ends_sentence(std::string_view text) {
  for (const std::string_view mark : {".", "!", "?", "\u3002", "\uff01", "\uff1f"})
    if (text.ends_with(mark)) return true;
  return false;
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
    const auto first = std::find_if(characters.begin(), characters.end(), is_text);
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
    if (!ends_sentence(part.text))
      while (!text.empty() && std::string_view(".!?").find(text.back()) != std::string_view::npos)
        text.remove_suffix(1);
    line += text;
  }
  return line;
}

}  // namespace nmt
