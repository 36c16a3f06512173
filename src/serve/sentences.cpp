#include "serve/sentences.h"

#include "core/error.h"
#include "text/spans.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>

#include <unicode/brkiter.h>
#include <unicode/uchar.h>
#include <unicode/utext.h>
#include <unicode/utf8.h>

namespace nmt::serve {
namespace {

// Creating an iterator is slow, so each thread keeps those that it has used.
icu::BreakIterator& sentence_iterator(const std::string& language) {
  thread_local std::map<std::string, std::unique_ptr<icu::BreakIterator>> iterators;
  std::unique_ptr<icu::BreakIterator>& iterator = iterators[language];
  if (!iterator) {
    UErrorCode status = U_ZERO_ERROR;
    const icu::Locale locale(language.c_str());
    iterator.reset(icu::BreakIterator::createSentenceInstance(locale, status));
    NMT_CHECK(U_SUCCESS(status) && iterator, "ICU has no sentence iterator: {}",
              u_errorName(status));
  }
  return *iterator;
}

struct Point {
  UChar32 code;
  std::size_t bytes;
};

Point point_at(std::string_view text, std::size_t at) {
  UChar32 code = 0;
  auto next = static_cast<std::int32_t>(at);
  U8_NEXT_OR_FFFD(text.data(), next, static_cast<std::int32_t>(text.size()), code);
  return {code, static_cast<std::size_t>(next) - at};
}

Point point_before(std::string_view text, std::size_t at) {
  UChar32 code = 0;
  auto before = static_cast<std::int32_t>(at);
  U8_PREV_OR_FFFD(text.data(), 0, before, code);
  return {code, at - static_cast<std::size_t>(before)};
}

// Abbreviations before a name or a number; those that often end a sentence are not among them.
constexpr std::string_view abbreviations[] = {
    "Mr.",  "Mrs.",  "Ms.",  "Dr.",  "Prof.", "St.",  "Gen.", "Col.",  "Capt.", "Lt.",  "Sgt.",
    "Rev.", "Sen.",  "Gov.", "vs.",  "e.g.",  "i.e.", "cf.",  "Fig.",  "Eq.",   "Vol.", "pp.",
    "Hr.",  "Fr.",   "Nr.",  "z.B.", "d.h.",  "u.a.", "ca.",  "bzw.",  "Abs.",  "Art.", "Bd.",
    "Mme.", "Mlle.", "Sr.",  "Sra.", "Srta.", "Dra.", "Sig.", "Dott.", "Ing.",  "dhr.", "mevr."};

// Whether the last word of a sentence is an abbreviation or an initial.
bool ends_in_abbreviation(std::string_view sentence) {
  const auto last = [&sentence] { return point_before(sentence, sentence.size()); };
  while (!sentence.empty() && u_isUWhiteSpace(last().code)) sentence.remove_suffix(last().bytes);
  if (!sentence.ends_with('.')) return false;
  std::size_t begin = sentence.size();
  while (begin > 0) {
    const Point before = point_before(sentence, begin);
    if (u_isUWhiteSpace(before.code) || (u_ispunct(before.code) && before.code != '.')) break;
    begin -= before.bytes;
  }
  const std::string_view word = sentence.substr(begin);
  const Point first = point_at(word, 0);
  const bool is_initial = word.size() == first.bytes + 1 && u_isupper(first.code);
  return is_initial || std::find(std::begin(abbreviations), std::end(abbreviations), word) !=
                           std::end(abbreviations);
}

// The end of the span that `at` is within; `at` where it is in none. ICU ends sentences at the "?"
// of an address.
std::size_t behind_span(const std::vector<TextSpan>& spans, std::size_t at) {
  const auto next =
      std::upper_bound(spans.begin(), spans.end(), at,
                       [](std::size_t place, const TextSpan& span) { return place < span.end; });
  return next != spans.end() && next->begin < at ? next->end : at;
}

std::vector<TextSpan> spans_of(std::string_view text) {
  return find_spans(text, {.placeholders = true, .urls = true, .emails = true, .numbers = true});
}

bool ends_line(UChar32 code) {
  return code == '\n' || code == '\r' || code == 0x85 || code == 0x2028 || code == 0x2029;
}

class Splitter {
 public:
  explicit Splitter(std::size_t max_characters) : max_characters_(max_characters) {}

  void add_line(std::string_view line, const std::string& language) {
    if (line.empty()) return;
    UErrorCode status = U_ZERO_ERROR;
    UText text = UTEXT_INITIALIZER;
    utext_openUTF8(&text, line.data(), static_cast<std::int64_t>(line.size()), &status);
    icu::BreakIterator& iterator = sentence_iterator(language);
    iterator.setText(&text, status);
    NMT_CHECK(U_SUCCESS(status), "ICU cannot read a text: {}", u_errorName(status));
    const std::vector<TextSpan> spans = spans_of(line);
    std::int32_t begin = iterator.first();
    for (std::int32_t end; (end = iterator.next()) != icu::BreakIterator::DONE;) {
      const std::string_view sentence =
          line.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
      const auto place = static_cast<std::size_t>(end);
      if (behind_span(spans, place) != place) continue;
      if (place < line.size() && ends_in_abbreviation(sentence)) continue;
      add_sentence(sentence, spans, static_cast<std::size_t>(begin));
      begin = end;
    }
    utext_close(&text);
  }

  void add_verbatim(std::string_view text) { append_verbatim(parts_, text); }

  std::vector<TextPart> take() { return std::move(parts_); }

 private:
  // Long sentences are cut behind the last white space within the limit, but not within a span of
  // the line, in which the sentence begins at `offset`.
  void add_sentence(std::string_view text, const std::vector<TextSpan>& spans, std::size_t offset) {
    const auto behind = [&](std::size_t at) { return behind_span(spans, offset + at) - offset; };
    while (!text.empty()) {
      std::size_t at = 0, cut = 0;
      for (std::size_t count = 0; at < text.size() && count < max_characters_; ++count) {
        const Point point = point_at(text, at);
        at += point.bytes;
        if (u_isUWhiteSpace(point.code) && behind(at) == at) cut = at;
      }
      if (at == text.size())
        cut = at;
      else if (cut == 0)
        cut = behind(at);
      append_sentence(parts_, text.substr(0, cut));
      text.remove_prefix(cut);
      offset += cut;
    }
  }

  std::size_t max_characters_;
  std::vector<TextPart> parts_;
};

}  // namespace

void append_verbatim(std::vector<TextPart>& parts, std::string_view text) {
  if (text.empty()) return;
  if (!parts.empty() && !parts.back().translate)
    parts.back().text += text;
  else
    parts.push_back({std::string(text), false});
}

void append_sentence(std::vector<TextPart>& parts, std::string_view text) {
  std::size_t begin = text.size(), end = 0;  // of what is not white space
  bool has_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const Point point = point_at(text, at);
    if (!u_isUWhiteSpace(point.code)) {
      begin = std::min(begin, at);
      end = at + point.bytes;
      has_word |= u_isalnum(point.code) != 0;
    }
    at += point.bytes;
  }
  if (!has_word) return append_verbatim(parts, text);
  append_verbatim(parts, text.substr(0, begin));
  parts.push_back({std::string(text.substr(begin, end - begin)), true});
  append_verbatim(parts, text.substr(end));
}

std::vector<TextPart> split_sentences(std::string_view text, const std::string& language,
                                      std::size_t max_characters) {
  Splitter splitter(std::max<std::size_t>(max_characters, 1));
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Point point = point_at(text, at);
    if (ends_line(point.code)) {
      splitter.add_line(text.substr(begin, at - begin), language);
      splitter.add_verbatim(text.substr(at, point.bytes));
      begin = at + point.bytes;
    }
    at += point.bytes;
  }
  splitter.add_line(text.substr(begin), language);
  return splitter.take();
}

}  // namespace nmt::serve
