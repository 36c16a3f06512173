#include "text/alignment.h"

#include "config/option.h"
#include "core/error.h"
#include "text/vocabulary/sentencepiece_model.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace nmt {
namespace {

constexpr std::string_view space_mark = "\u2581";
constexpr std::string_view white_space = " \t\v\f\r";

std::vector<std::string> pieces_of(const Vocabulary& vocabulary,
                                   std::span<const std::int32_t> ids) {
  std::vector<std::string> pieces;
  pieces.reserve(ids.size());
  for (const std::int32_t id : ids) pieces.push_back(vocabulary.piece(id));
  return pieces;
}

std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0;;) {
    const std::size_t begin = line.find_first_not_of(white_space, at);
    if (begin == std::string_view::npos) return words;
    at = std::min(line.find_first_of(white_space, begin), line.size());
    words.push_back(line.substr(begin, at - begin));
  }
}

// Whether normalization keeps each word one word.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// A position before `end`, or -1.
int read_position(const char* begin, const char* end) {
  int value = -1;
  const auto [rest, error] = std::from_chars(begin, end, value);
  return error == std::errc() && rest == end ? value : -1;
}

void check_position(int position, std::size_t words, std::string_view link, const char* side,
                    std::string_view path, std::int64_t number) {
  if (static_cast<std::size_t>(position) < words) return;
  fail(ExitStatus::data, "{}:{}: link {}: the {} has {} words; expected {}", path, number, link,
       side, words, words == 0 ? "no link" : fmt::format("a position from 0 to {}", words - 1));
}

}  // namespace

PieceGroups each_piece(std::size_t pieces) {
  PieceGroups groups{std::vector<int>(pieces), static_cast<int>(pieces)};
  std::iota(groups.of_piece.begin(), groups.of_piece.end(), 0);
  return groups;
}

PieceGroups words_of_pieces(std::span<const std::string> pieces) {
  PieceGroups groups;
  bool between_words = true;
  for (const std::string& piece : pieces) {
    int word = -1;  // the last word that has a character in this piece
    for (std::string_view rest = piece; !rest.empty();) {
      if (rest.starts_with(space_mark)) {
        between_words = true;
        rest.remove_prefix(space_mark.size());
      } else {
        if (between_words) ++groups.count;
        between_words = false;
        word = groups.count - 1;
        rest.remove_prefix(1);
      }
    }
    groups.of_piece.push_back(word >= 0 ? word : groups.count);
  }
  for (int& word : groups.of_piece) word = std::min(word, groups.count - 1);
  return groups;
}

PieceGroups words_of_line(const Vocabulary& vocabulary, std::string_view line,
                          std::span<const std::int32_t> ids) {
  const std::vector<std::string_view> raw = split_words(line);
  // Among whole words, <unk> is a word of its own.
  const bool has_unknown_words = std::find(ids.begin(), ids.end(), vocabulary.unk()) != ids.end() &&
                                 vocabulary_type(vocabulary.bytes()) == VocabularyType::word;
  PieceGroups groups = has_unknown_words ? words_of_ids(vocabulary, ids)
                                         : words_of_pieces(pieces_of(vocabulary, ids));
  if (groups.count == static_cast<int>(raw.size()) && is_plain(line)) return groups;
  // Normalization may have changed the words, or a crop removed some: count how many normalized
  // words each raw word became.
  std::vector<int> raw_of_normalized;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (static_cast<int>(raw_of_normalized.size()) >= groups.count) break;
    const int count = is_plain(raw[i])
                          ? 1
                          : words_of_pieces(pieces_of(vocabulary, vocabulary.encode(raw[i]))).count;
    raw_of_normalized.insert(raw_of_normalized.end(), count, static_cast<int>(i));
  }
  for (int& word : groups.of_piece)
    if (word >= 0)
      word = word < static_cast<int>(raw_of_normalized.size()) ? raw_of_normalized[word]
                                                               : static_cast<int>(raw.size()) - 1;
  groups.count = static_cast<int>(raw.size());
  return groups;
}

PieceGroups words_of_ids(const Vocabulary& vocabulary, std::span<const std::int32_t> ids) {
  std::vector<std::string> pieces = pieces_of(vocabulary, ids);
  for (std::size_t i = 0; i < ids.size(); ++i)  // <unk> is a separate word
    if (ids[i] == vocabulary.unk())
      pieces[i] = std::string(space_mark) + "?" + std::string(space_mark);
  return words_of_pieces(pieces);
}

std::string pharaoh(std::span<const AlignmentPoint> points) {
  std::string text;
  for (const AlignmentPoint& point : points)
    fmt::format_to(std::back_inserter(text), "{}{}-{}", text.empty() ? "" : " ", point.source,
                   point.target);
  return text;
}

std::vector<AlignmentPoint> read_pharaoh(std::string_view line, std::size_t source_words,
                                         std::size_t target_words, std::string_view path,
                                         std::int64_t number) {
  std::vector<AlignmentPoint> links;
  for (const std::string_view link : split_words(line)) {
    const std::size_t dash = std::min(link.find('-'), link.size());
    const char *const begin = link.data(), *const end = begin + link.size();
    const AlignmentPoint point{read_position(begin, begin + dash),
                               dash < link.size() ? read_position(begin + dash + 1, end) : -1};
    if (point.source < 0 || point.target < 0)
      fail(ExitStatus::data,
           "{}:{}: '{}' is no link; expected the positions of two words, such as 0-2", path, number,
           config::shown(link));
    check_position(point.source, source_words, link, "source", path, number);
    check_position(point.target, target_words, link, "target", path, number);
    links.push_back(point);
  }
  return links;
}

std::vector<AlignmentPoint> piece_links(std::span<const AlignmentPoint> links,
                                        const PieceGroups& source, const PieceGroups& target) {
  // (target, source), sorted, each once.
  std::vector<std::pair<int, int>> sorted;
  sorted.reserve(links.size());
  for (const AlignmentPoint& link : links) sorted.emplace_back(link.target, link.source);
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<AlignmentPoint> points;
  for (std::size_t t = 0; t < target.of_piece.size(); ++t) {
    const int group = target.of_piece[t];
    using Limits = std::numeric_limits<int>;
    const auto first =
        std::lower_bound(sorted.begin(), sorted.end(), std::pair(group, Limits::min()));
    const auto last = std::upper_bound(first, sorted.end(), std::pair(group, Limits::max()));
    if (first == last) continue;
    for (std::size_t s = 0; s < source.of_piece.size(); ++s)
      if (std::binary_search(first, last, std::pair(group, source.of_piece[s])))
        points.push_back({static_cast<int>(s), static_cast<int>(t)});
  }
  return points;
}

}  // namespace nmt
