#include "serve/languages.h"

#include "core/error.h"
#include "text/utf8.h"

#include <algorithm>
#include <utility>

#include <unicode/locid.h>
#include <unicode/unistr.h>

#if NMT_WITH_CLD2
#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>
#endif

namespace nmt::serve {
namespace {

// "de", "pt-BR", "zh-Hans".
bool is_code(std::string_view text) {
  constexpr std::size_t longest = 16;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return text.size() >= 2 && text.size() <= longest && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

std::string_view main_code(std::string_view code) {
  return code.substr(0, code.find('-'));
}

}  // namespace

bool parse_direction(std::string_view text, Direction& direction) {
  std::size_t at = text.find('_');
  if (at == std::string_view::npos) {
    at = text.find('-');
    if (at == std::string_view::npos || text.find('-', at + 1) != std::string_view::npos)
      return false;
  }
  const std::string_view source = text.substr(0, at), target = text.substr(at + 1);
  if (!is_code(source) || !is_code(target) || source == target) return false;
  direction = {std::string(source), std::string(target)};
  return true;
}

std::string language_name(const std::string& code) {
  icu::UnicodeString name;
  icu::Locale(code.c_str()).getDisplayName(icu::Locale::getEnglish(), name);
  std::string text;
  name.toUTF8String(text);
  return text.empty() ? code : text;
}

#if NMT_WITH_CLD2

namespace {

// The candidate with this code ("zh-Hant"), or else the first with its main code; null: none.
const std::string* find_candidate(const std::vector<std::string>& candidates,
                                  std::string_view code) {
  auto found = std::find(candidates.begin(), candidates.end(), code);
  if (found == candidates.end())
    found = std::find_if(candidates.begin(), candidates.end(), [&](const std::string& candidate) {
      return main_code(candidate) == main_code(code);
    });
  return found == candidates.end() ? nullptr : &*found;
}

// The candidate of a language that CLD2 names; null: none. CLD2 has older codes of some.
const std::string* candidate_of(const std::vector<std::string>& candidates, std::string_view code) {
  constexpr std::pair<std::string_view, std::string_view> others[] = {
      {"iw", "he"}, {"jw", "jv"}, {"no", "nb"}, {"tl", "fil"}};
  if (const std::string* const found = find_candidate(candidates, code)) return found;
  for (const auto& [older, newer] : others)
    if (code == older) return find_candidate(candidates, newer);
  return nullptr;
}

}  // namespace

bool can_detect() {
  return true;
}

std::vector<Detection> detect_language(std::string_view text,
                                       const std::vector<std::string>& candidates) {
  constexpr std::size_t enough = 20'000;  // bytes
  text = text.substr(0, enough);
  while (!text.empty() && continues_character(text.back())) text.remove_suffix(1);
  if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0) text.remove_suffix(1);
  CLD2::CLDHints hints{nullptr, nullptr, CLD2::UNKNOWN_ENCODING, CLD2::UNKNOWN_LANGUAGE};
  CLD2::Language languages[3];
  int percent[3] = {}, bytes = 0;
  double scores[3];
  bool reliable = false;
  CLD2::ExtDetectLanguageSummary(text.data(), static_cast<int>(text.size()), true, hints.tld_hint,
                                 hints.encoding_hint, hints.language_hint, languages, percent,
                                 scores, &bytes, &reliable);
  std::vector<Detection> found;
  for (int i = 0; i < 3; ++i) {
    if (percent[i] == 0) continue;
    const std::string* const candidate = candidate_of(candidates, CLD2::LanguageCode(languages[i]));
    if (!candidate) continue;
    const auto listed = std::find_if(found.begin(), found.end(), [&](const Detection& each) {
      return each.language == *candidate;
    });
    if (listed == found.end())
      found.push_back({*candidate, static_cast<double>(percent[i])});
    else
      listed->confidence += percent[i];
  }
  std::stable_sort(found.begin(), found.end(), [](const Detection& a, const Detection& b) {
    return a.confidence > b.confidence;
  });
  if (found.empty() && !candidates.empty()) found.push_back({candidates.front(), 0.0});
  return found;
}

#else

bool can_detect() {
  return false;
}

std::vector<Detection> detect_language(std::string_view, const std::vector<std::string>&) {
  fail(ExitStatus::failed, "language detection: nmt was built without CLD2");
}

#endif

}  // namespace nmt::serve
