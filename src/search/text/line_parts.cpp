#include "search/text/line_parts.h"

#include <algorithm>

namespace nmt {
namespace {

constexpr std::string_view white_space = " \t\v\f\r";

bool has_letter(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           static_cast<unsigned char>(c) >= 0x80;
  });
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
    const std::size_t begin = text.find_first_not_of(white_space);
    if (begin == std::string_view::npos || !has_letter(text)) {
      parts.push_back({std::string(text), false});
      return;
    }
    const std::size_t end = text.find_last_not_of(white_space) + 1;
    if (begin > 0) parts.push_back({std::string(text.substr(0, begin)), false});
    parts.push_back({std::string(text.substr(begin, end - begin)), true});
    if (end < text.size()) parts.push_back({std::string(text.substr(end)), false});
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
