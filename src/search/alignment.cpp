#include "search/alignment.h"

#include "core/error.h"

#include <algorithm>
#include <iterator>
#include <numeric>

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

}  // namespace

PieceGroups groups_of_line(AlignmentKind kind, const Vocabulary& vocabulary, std::string_view line,
                           std::span<const std::int32_t> ids, bool in_pieces) {
  if (kind == AlignmentKind::none) return {};
  if (kind == AlignmentKind::subword) return each_piece(ids.size());
  return in_pieces ? words_of_ids(vocabulary, ids) : words_of_line(vocabulary, line, ids);
}

PieceGroups groups_of_source(AlignmentKind kind, const Vocabulary& vocabulary,
                             std::string_view line, const SourceIds& source, bool in_pieces) {
  PieceGroups groups = groups_of_line(kind, vocabulary, line, source.sentence(), in_pieces);
  if (kind != AlignmentKind::none)
    groups.of_piece.insert(groups.of_piece.begin(), source.context, -1);
  return groups;
}

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
  PieceGroups groups = words_of_pieces(pieces_of(vocabulary, ids));
  if (groups.count == static_cast<int>(raw.size())) return groups;
  // Normalization changed the words, or a crop removed some: count how many normalized words each
  // raw word became.
  std::vector<int> raw_of_normalized;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (static_cast<int>(raw_of_normalized.size()) >= groups.count) break;
    const int count = words_of_pieces(pieces_of(vocabulary, vocabulary.encode(raw[i]))).count;
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

std::vector<AlignmentPoint> hard_alignment(std::span<const float> attention, int source_steps,
                                           const PieceGroups& source, const PieceGroups& target) {
  const std::size_t columns = source.of_piece.size(), rows = target.of_piece.size();
  NMT_CHECK(
      columns <= static_cast<std::size_t>(source_steps) && rows * source_steps <= attention.size(),
      "attention with {} values over {} source steps is too small for {} source and {} target "
      "pieces",
      attention.size(), source_steps, columns, rows);
  std::vector<double> pooled(static_cast<std::size_t>(source.count) * target.count, 0.0);
  for (std::size_t t = 0; t < rows; ++t)
    for (std::size_t s = 0; s < columns; ++s)
      if (target.of_piece[t] >= 0 && source.of_piece[s] >= 0)
        pooled[static_cast<std::size_t>(target.of_piece[t]) * source.count + source.of_piece[s]] +=
            attention[t * source_steps + s];
  std::vector<AlignmentPoint> points;
  for (int j = 0; j < target.count && source.count > 0; ++j) {
    const auto row = pooled.begin() + static_cast<std::ptrdiff_t>(j) * source.count;
    points.push_back({static_cast<int>(std::max_element(row, row + source.count) - row), j});
  }
  std::sort(points.begin(), points.end(), [](const AlignmentPoint& a, const AlignmentPoint& b) {
    return a.source != b.source ? a.source < b.source : a.target < b.target;
  });
  return points;
}

std::string pharaoh(std::span<const AlignmentPoint> points) {
  std::string text;
  for (const AlignmentPoint& point : points)
    fmt::format_to(std::back_inserter(text), "{}{}-{}", text.empty() ? "" : " ", point.source,
                   point.target);
  return text;
}

}  // namespace nmt
