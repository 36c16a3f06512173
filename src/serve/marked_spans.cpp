#include "serve/marked_spans.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

namespace nmt::serve {
namespace {

using Place = std::pair<std::size_t, std::size_t>;  // begin and end

// Finds occurrences of texts that share no byte with those found before.
class Finder {
 public:
  explicit Finder(std::string_view text) : text_(text), used_(text.size()) {}

  // The first occurrence from `from` on; an empty place where there is none.
  Place find(std::string_view part, std::size_t from, bool whole_words) {
    for (std::size_t at = from; (at = text_.find(part, at)) != std::string_view::npos; ++at) {
      const std::size_t end = at + part.size();
      if (whole_words && !is_whole_word(text_, at, end)) continue;
      const auto first = used_.begin() + static_cast<std::ptrdiff_t>(at);
      const auto last = first + static_cast<std::ptrdiff_t>(part.size());
      if (std::find(first, last, true) != last) continue;
      std::fill(first, last, true);
      return {at, end};
    }
    return {};
  }

 private:
  std::string_view text_;
  std::vector<bool> used_;  // by byte
};

// Longer texts first, since a shorter one may be a part of them; equal ones from left to right.
std::vector<Place> places_of(std::vector<TextSpan> spans, std::string_view text) {
  std::stable_sort(spans.begin(), spans.end(), [](const TextSpan& a, const TextSpan& b) {
    return std::tuple(b.text.size(), std::string_view(a.text)) <
           std::tuple(a.text.size(), std::string_view(b.text));
  });
  Finder finder(text);
  std::vector<Place> places;
  for (std::size_t i = 0, end = 0; i < spans.size(); i = end) {
    while (end < spans.size() && spans[end].text == spans[i].text) ++end;
    std::size_t left = end - i;
    for (const bool whole_words : {true, false})
      for (std::size_t from = 0; left > 0; --left) {
        const Place place = finder.find(spans[i].text, from, whole_words);
        if (place.second == 0) break;
        places.push_back(place);
        from = place.second;
      }
  }
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

std::string with_markers(std::string_view sentence, std::string translation) {
  std::vector<TextSpan> spans = marked_spans(sentence);
  std::erase_if(spans, [](const TextSpan& span) { return span.text.empty(); });
  if (spans.empty()) return translation;
  const std::vector<Place> places = places_of(std::move(spans), translation);
  const std::string_view text = translation;
  std::string marked;
  std::size_t at = 0;
  for (const auto& [begin, end] : places) {
    marked += text.substr(at, begin - at);
    marked += open_marker;
    marked += text.substr(begin, end - begin);
    marked += close_marker;
    at = end;
  }
  marked += text.substr(at);
  // A translation may have a marker that belongs to none of the spans.
  const std::vector<TextSpan> found = marked_spans(marked);
  const bool is_same = found.size() == places.size() && without_markers(marked, found) == text;
  return is_same ? marked : translation;
}

}  // namespace nmt::serve
