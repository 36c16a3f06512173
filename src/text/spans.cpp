#include "text/spans.h"

#include "text/unicode.h"
#include "text/utf8.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace nmt {
namespace {

constexpr std::string_view open_marker = "<keep>", close_marker = "</keep>";
constexpr std::size_t longest_placeholder = 64;  // bytes between its delimiters

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_name(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}
bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}
bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_in(char c, std::string_view set) {
  return set.find(c) != std::string_view::npos;
}

bool is_word(char32_t point) {
  if (point < 0x80) return is_name(static_cast<char>(point));
  return point >= 0xC0 && point < 0x2000 && !is_punctuation(point) && !is_symbol(point) &&
         !nmt::is_space(point);
}

// Where the character begins that ends before `at`, which is not 0.
std::size_t character_before(std::string_view line, std::size_t at) {
  do --at;
  while (at > 0 && continues_character(line[at]));
  return at;
}

// White space, quotes, and punctuation of scripts that write no space behind it.
bool ends_url(char32_t point) {
  constexpr char32_t zero_width_space = 0x200B;
  return nmt::is_space(point) || point == zero_width_space || point == 0xAB || point == 0xBB ||
         (point >= 0x2018 && point <= 0x201F) || (point >= 0x3000 && point <= 0x3011) ||
         (point >= 0xFF01 && point <= 0xFF0F) || (point >= 0xFF1A && point <= 0xFF1F);
}

// Whether the character at `at` does not belong to a URL that it would end.
bool is_behind_url(std::string_view line, std::size_t at) {
  return is_ascii(line[at]) ? is_in(line[at], ".,;:!?'*_")
                            : is_punctuation(code_point(line.substr(at)));
}

// Each function returns the end of the span that begins at `at`, or `at` where there is none.

std::size_t marked_end(std::string_view line, std::size_t at) {
  if (!line.substr(at).starts_with(open_marker)) return at;
  const std::size_t close = line.find(close_marker, at + open_marker.size());
  return close == std::string_view::npos ? at : close + close_marker.size();
}

// Whether the text begins with `lower` in any case. Schemes and hosts are case-insensitive (RFC
// 3986, section 6.2.2.1).
bool starts_in_any_case(std::string_view text, std::string_view lower) {
  const auto is_same = [](char letter, char c) {
    return c == letter || (letter >= 'a' && letter <= 'z' && c == letter - 'a' + 'A');
  };
  return text.size() >= lower.size() &&
         std::equal(lower.begin(), lower.end(), text.begin(), is_same);
}

std::size_t url_end(std::string_view line, std::size_t at) {
  if (at > 0 && is_name(line[at - 1])) return at;
  const std::string_view rest = line.substr(at);
  std::size_t prefix = 0;
  for (const std::string_view start : {"https://", "http://", "ftp://", "www."})
    if (starts_in_any_case(rest, start)) prefix = start.size();
  if (prefix == 0) return at;
  std::size_t end = at + prefix;
  int open = 0;  // parentheses
  for (; end < line.size() && !is_in(line[end], "<>\"`"); ++end) {
    if (!continues_character(line[end]) && ends_url(code_point(line.substr(end)))) break;
    if (line[end] == '(') ++open;
    if (line[end] == ')' && --open < 0) break;
  }
  for (std::size_t last; end > at + prefix; end = last) {
    last = character_before(line, end);
    if (!is_behind_url(line, last)) break;
  }
  return end <= at + prefix ? at : end;
}

// Bytes of the character at `at` if it may be part of an address before its "@"; else 0.
std::size_t local_bytes(std::string_view line, std::size_t at) {
  if (is_ascii(line[at])) return is_name(line[at]) || is_in(line[at], ".%+-") ? 1 : 0;
  if (continues_character(line[at]) || !is_word(code_point(line.substr(at)))) return 0;
  std::size_t end = at + 1;
  while (end < line.size() && continues_character(line[end])) ++end;
  return end - at;
}

std::size_t email_end(std::string_view line, std::size_t at) {
  if (is_in(line[at], ".%+-") || local_bytes(line, at) == 0) return at;
  if (at > 0 && local_bytes(line, character_before(line, at)) > 0) return at;
  std::size_t end = at;
  for (std::size_t bytes; end < line.size() && (bytes = local_bytes(line, end)) > 0;) end += bytes;
  if (end == line.size() || line[end] != '@') return at;
  const std::size_t domain = ++end;
  while (end < line.size() &&
         (is_letter(line[end]) || is_digit(line[end]) || line[end] == '-' || line[end] == '.'))
    ++end;
  while (end > domain && !is_letter(line[end - 1])) --end;  // a full stop behind the address
  const std::string_view host = line.substr(domain, end - domain);
  const std::size_t dot = host.rfind('.');
  return dot != std::string_view::npos && dot > 0 && host.size() - dot > 2 ? end : at;
}

// "{...}" from `at` on without spaces; "{{...}}" with them.
std::size_t braces_end(std::string_view line, std::size_t at) {
  const bool two = line.substr(at).starts_with("{{");
  const std::size_t first = at + (two ? 2 : 1);
  const std::string_view near = line.substr(std::min(first, line.size()), longest_placeholder);
  const std::size_t length = near.find(two ? "}}" : "}");
  if (length == std::string_view::npos) return at;
  const std::string_view inside = near.substr(0, length);
  if (inside.find('{') != std::string_view::npos) return at;
  if (!two && std::any_of(inside.begin(), inside.end(), is_space)) return at;
  return first + length + (two ? 2 : 1);
}

// printf's conversions, also "%1$s" and "%(name)s", and "%name%".
std::size_t percent_end(std::string_view line, std::size_t at) {
  if (at > 0 && is_digit(line[at - 1])) return at;  // "100%"
  std::size_t end = at + 1;
  const auto skip = [&](auto is_one) {
    while (end < line.size() && is_one(line[end])) ++end;
  };
  if (end < line.size() && line[end] == '(') {
    const std::size_t length = line.substr(end, longest_placeholder).find(')');
    if (length == std::string_view::npos) return at;
    end += length + 1;
  } else {
    const std::size_t max_end = std::min(line.size(), at + longest_placeholder);
    while (end < max_end && is_name(line[end])) ++end;
    if (end > at + 1 && end < line.size() && line[end] == '%' && !is_digit(line[at + 1]))
      return end + 1;
    end = at + 1;
    skip(is_digit);
    if (end < line.size() && line[end] == '$')
      ++end;
    else
      end = at + 1;
  }
  skip([](char c) { return is_digit(c) || is_in(c, "-+#.*"); });
  skip([](char c) { return is_in(c, "hlLqjzt"); });
  if (end == line.size() || !is_in(line[end], "diouxXeEfFgGaAcsp@")) return at;
  ++end;
  return end < line.size() && is_name(line[end]) ? at : end;
}

std::size_t placeholder_end(std::string_view line, std::size_t at) {
  if (line[at] == '{') return braces_end(line, at);
  if (line.substr(at).starts_with("${")) {
    const std::size_t end = braces_end(line, at + 1);
    return end == at + 1 ? at : end;
  }
  return line[at] == '%' ? percent_end(line, at) : at;
}

std::size_t number_end(std::string_view line, std::size_t at) {
  if (!is_digit(line[at])) return at;
  if (at > 0 && (is_name(line[at - 1]) ||
                 (at > 1 && is_in(line[at - 1], ".,:/'-") && is_digit(line[at - 2]))))
    return at;
  std::size_t end = at;
  while (end < line.size()) {
    if (is_digit(line[end]))
      ++end;
    else if (is_in(line[end], ".,:/'-") && end + 1 < line.size() && is_digit(line[end + 1]))
      end += 2;
    else
      break;
  }
  return is_whole_word(line, at, end) ? end : at;  // "3rd", "2x"
}

// Marks the bytes of `text` that serve a span.
class Uses {
 public:
  explicit Uses(std::string_view text) : text_(text), used_(text.size()) {}

  // Marks `times` occurrences of the part as whole words that share no byte with a marked one;
  // false if there are fewer. Knuth, Morris and Pratt's search: linear time.
  bool take_words(std::string_view part, std::size_t times) {
    std::vector<std::size_t> border(part.size());  // of the part's beginnings
    for (std::size_t i = 1, length = 0; i < part.size(); ++i) {
      while (length > 0 && part[i] != part[length]) length = border[length - 1];
      border[i] = length += part[i] == part[length];
    }
    std::size_t length = 0, free = 0;  // bytes of the part before the place; end of the last use
    for (std::size_t end = 1; end <= text_.size() && times > 0; ++end) {
      const char c = text_[end - 1];
      if (used_[end - 1]) free = end;
      while (length > 0 && (length == part.size() || c != part[length]))
        length = border[length - 1];
      length += c == part[length];
      if (length < part.size() || end - length < free || !is_whole_word(text_, end - length, end))
        continue;
      mark(end - length, end);
      free = end;
      --times;
    }
    return times == 0;
  }

  // The same for spans of the text with the kind and text of `what`.
  bool take_spans(const std::vector<TextSpan>& found,
                  const std::pair<SpanKind, std::string_view>& what, std::size_t times) {
    for (const TextSpan& span : found) {
      if (times == 0) break;
      if (std::pair<SpanKind, std::string_view>(span.kind, span.text) != what) continue;
      if (std::find(place(span.begin), place(span.end), true) != place(span.end)) continue;
      mark(span.begin, span.end);
      --times;
    }
    return times == 0;
  }

 private:
  std::vector<bool>::iterator place(std::size_t at) {
    return used_.begin() + static_cast<std::ptrdiff_t>(at);
  }
  void mark(std::size_t begin, std::size_t end) { std::fill(place(begin), place(end), true); }

  std::string_view text_;
  std::vector<bool> used_;  // by byte
};

}  // namespace

std::vector<TextSpan> find_spans(std::string_view line, const SpanKinds& kinds) {
  struct Finder {
    bool wanted;
    SpanKind kind;
    std::size_t (*end)(std::string_view, std::size_t);
  };
  const Finder finders[] = {{kinds.marked, SpanKind::marked, marked_end},
                            {kinds.urls, SpanKind::url, url_end},
                            {kinds.emails, SpanKind::email, email_end},
                            {kinds.placeholders, SpanKind::placeholder, placeholder_end},
                            {kinds.numbers, SpanKind::number, number_end}};
  // Without a close marker behind it, no open marker needs a search.
  const std::size_t last_close = kinds.marked ? line.rfind(close_marker) : 0;
  std::vector<TextSpan> spans;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = at;
    for (const Finder& finder : finders) {
      if (finder.kind == SpanKind::marked &&
          (last_close == std::string_view::npos || begin > last_close))
        continue;
      const std::size_t end = finder.wanted ? finder.end(line, begin) : begin;
      if (end == begin) continue;
      std::string_view text = line.substr(begin, end - begin);
      if (finder.kind == SpanKind::marked)
        text =
            text.substr(open_marker.size(), text.size() - open_marker.size() - close_marker.size());
      spans.push_back({begin, end, finder.kind, std::string(text)});
      at = end;
      break;
    }
    if (at == begin) ++at;
  }
  return spans;
}

std::string without_markers(std::string_view line, const std::vector<TextSpan>& spans) {
  std::string text;
  std::size_t at = 0;
  for (const TextSpan& span : spans) {
    if (span.kind != SpanKind::marked) continue;
    text += line.substr(at, span.begin - at);
    text += span.text;
    at = span.end;
  }
  text += line.substr(at);
  return text;
}

bool contains_all(std::string_view translation, const std::vector<TextSpan>& spans) {
  using What = std::pair<SpanKind, std::string_view>;
  // A longer text has fewer places, and so has a kind that a rule finds.
  const auto goes_first = [](const What& a, const What& b) {
    return std::tuple(b.second.size(), a) < std::tuple(a.second.size(), b);
  };
  std::map<What, std::size_t, decltype(goes_first)> needed;
  SpanKinds kinds;
  const auto is_free = [](SpanKind kind) {  // text that no rule finds
    return kind == SpanKind::marked || kind == SpanKind::term;
  };
  for (const TextSpan& span : spans) {
    if (!span.text.empty())
      ++needed[{is_free(span.kind) ? SpanKind::marked : span.kind, span.text}];
    kinds.placeholders |= span.kind == SpanKind::placeholder;
    kinds.urls |= span.kind == SpanKind::url;
    kinds.emails |= span.kind == SpanKind::email;
    kinds.numbers |= span.kind == SpanKind::number;
  }
  const std::vector<TextSpan> found = find_spans(translation, kinds);
  Uses uses(translation);
  return std::all_of(needed.begin(), needed.end(), [&](const auto& need) {
    const auto& [what, times] = need;
    return is_free(what.first) ? uses.take_words(what.second, times)
                               : uses.take_spans(found, what, times);
  });
}

bool is_whole_word(std::string_view line, std::size_t begin, std::size_t end) {
  const auto is_inside = [&](std::size_t at) {  // of a word
    return is_word(code_point(line.substr(character_before(line, at)))) &&
           is_word(code_point(line.substr(at)));
  };
  if (begin > 0 && is_inside(begin)) return false;
  return end == line.size() || end == begin || !is_inside(end);
}

}  // namespace nmt
