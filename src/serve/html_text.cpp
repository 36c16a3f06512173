#include "serve/html_text.h"

#include "text/unicode.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>

namespace nmt::serve {
namespace {

constexpr std::string_view no_break_space = "\u00a0";
constexpr std::size_t longest_reference = 33;  // bytes

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The names of U+00A0 to U+00FF (HTML 4.01, section 24.2.1), in order.
constexpr std::string_view latin_1[] = {
    "nbsp",   "iexcl",  "cent",   "pound",  "curren", "yen",    "brvbar", "sect",   "uml",
    "copy",   "ordf",   "laquo",  "not",    "shy",    "reg",    "macr",   "deg",    "plusmn",
    "sup2",   "sup3",   "acute",  "micro",  "para",   "middot", "cedil",  "sup1",   "ordm",
    "raquo",  "frac14", "frac12", "frac34", "iquest", "Agrave", "Aacute", "Acirc",  "Atilde",
    "Auml",   "Aring",  "AElig",  "Ccedil", "Egrave", "Eacute", "Ecirc",  "Euml",   "Igrave",
    "Iacute", "Icirc",  "Iuml",   "ETH",    "Ntilde", "Ograve", "Oacute", "Ocirc",  "Otilde",
    "Ouml",   "times",  "Oslash", "Ugrave", "Uacute", "Ucirc",  "Uuml",   "Yacute", "THORN",
    "szlig",  "agrave", "aacute", "acirc",  "atilde", "auml",   "aring",  "aelig",  "ccedil",
    "egrave", "eacute", "ecirc",  "euml",   "igrave", "iacute", "icirc",  "iuml",   "eth",
    "ntilde", "ograve", "oacute", "ocirc",  "otilde", "ouml",   "divide", "oslash", "ugrave",
    "uacute", "ucirc",  "uuml",   "yacute", "thorn",  "yuml"};
struct Named {
  std::string_view name;
  std::uint32_t code;
};
constexpr Named others[] = {
    {"amp", '&'},       {"lt", '<'},        {"gt", '>'},        {"quot", '"'},
    {"apos", '\''},     {"ndash", 0x2013},  {"mdash", 0x2014},  {"lsquo", 0x2018},
    {"rsquo", 0x2019},  {"sbquo", 0x201A},  {"ldquo", 0x201C},  {"rdquo", 0x201D},
    {"bdquo", 0x201E},  {"bull", 0x2022},   {"hellip", 0x2026}, {"prime", 0x2032},
    {"lsaquo", 0x2039}, {"rsaquo", 0x203A}, {"euro", 0x20AC},   {"trade", 0x2122},
    {"minus", 0x2212},  {"thinsp", 0x2009}, {"OElig", 0x152},   {"oelig", 0x153},
    {"Scaron", 0x160},  {"scaron", 0x161},  {"Yuml", 0x178}};

// The text of the reference between "&" and ";", "" for one that is not known.
std::string resolve(std::string_view name) {
  std::string text;
  for (const Named& other : others)
    if (name == other.name) append_utf8(text, other.code);
  for (std::uint32_t i = 0; i < std::size(latin_1); ++i)
    if (name == latin_1[i]) append_utf8(text, 0xA0 + i);
  if (!text.empty()) return text;
  if (!name.starts_with("#")) return "";
  name.remove_prefix(1);
  const bool is_hex = name.starts_with("x") || name.starts_with("X");
  if (is_hex) name.remove_prefix(1);
  std::uint32_t code = 0;
  const auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), code, is_hex ? 16 : 10);
  // As in browsers, codes of control characters are those of Windows-1252 (HTML Standard, numeric
  // character reference end state).
  constexpr std::uint16_t windows_1252[] = {
      0x20AC, 0,      0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021, 0x2C6,  0x2030, 0x160,
      0x2039, 0x152,  0,      0x17D,  0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
      0x2013, 0x2014, 0x2DC,  0x2122, 0x161,  0x203A, 0x153,  0,      0x17E,  0x178};
  if (code >= 0x80 && code < 0xA0) code = windows_1252[code - 0x80];
  const bool is_white = code == '\t' || code == '\n' || code == '\r';
  const bool is_character = is_white || (code >= 0x20 && code <= 0x10FFFF && code != 0x7F &&
                                         !(code >= 0xD800 && code < 0xE000));
  if (error != std::errc() || end != name.data() + name.size() || !is_character) return "";
  append_utf8(text, code);
  return text;
}

// Whether a text is the part of a reference between "&" and ";" (HTML Standard, section 13.1.4).
bool is_reference(std::string_view name) {
  const auto consists_of = [](std::string_view text, std::string_view characters) {
    return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
  };
  if (name.starts_with("#x") || name.starts_with("#X"))
    return consists_of(name.substr(2), "0123456789abcdefABCDEF");
  if (name.starts_with("#")) return consists_of(name.substr(1), "0123456789");
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// The reference that begins with the "&" at `at`, "" where there is none.
std::string_view reference_at(std::string_view text, std::size_t at) {
  const std::size_t end = text.substr(at, longest_reference).find(';');
  if (end == std::string_view::npos || !is_reference(text.substr(at + 1, end - 1))) return "";
  return text.substr(at, end + 1);
}

}  // namespace

std::string decode_html(std::string_view text, HtmlReferences* unresolved) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view reference = text[at] == '&' ? reference_at(text, at) : "";
    if (reference.empty()) {
      result += text[at++];
      continue;
    }
    const std::string resolved = resolve(reference.substr(1, reference.size() - 2));
    if (resolved.empty() && unresolved) unresolved->emplace(reference);
    result += resolved.empty() ? reference : std::string_view(resolved);
    at += reference.size();
  }
  return result;
}

std::string encode_html(std::string_view text, const HtmlReferences& unresolved) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '&': result += unresolved.contains(reference_at(text, at)) ? "&" : "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      default:
        if (text.substr(at).starts_with(no_break_space)) {
          result += "&nbsp;";
          ++at;
        } else {
          result += text[at];
        }
    }
  }
  return result;
}

}  // namespace nmt::serve
