#include "search/alignment.h"

#include "core/error.h"

#include <algorithm>

namespace nmt {

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

std::vector<AlignmentPoint> hard_alignment(std::span<const float> attention, int source_steps,
                                           const PieceGroups& source, const PieceGroups& target) {
  const std::size_t columns = source.of_piece.size(), rows = target.of_piece.size();
  NMT_CHECK(
      columns <= static_cast<std::size_t>(source_steps) && rows * source_steps <= attention.size(),
      "attention with {} values over {} source steps is too small for {} source and {} target "
      "pieces",
      attention.size(), source_steps, columns, rows);
  // Groups behind the last one that has a piece are those of a crop.
  const auto groups_with_pieces = [](const PieceGroups& groups) {
    int count = 0;
    for (const int group : groups.of_piece) count = std::max(count, group + 1);
    return count;
  };
  const int source_count = groups_with_pieces(source), target_count = groups_with_pieces(target);
  std::vector<bool> has_pieces(static_cast<std::size_t>(target_count));
  for (const int group : target.of_piece)
    if (group >= 0) has_pieces[static_cast<std::size_t>(group)] = true;
  std::vector<double> pooled(static_cast<std::size_t>(source_count) * target_count, 0.0);
  for (std::size_t t = 0; t < rows; ++t)
    for (std::size_t s = 0; s < columns; ++s)
      if (target.of_piece[t] >= 0 && source.of_piece[s] >= 0)
        pooled[static_cast<std::size_t>(target.of_piece[t]) * source_count + source.of_piece[s]] +=
            attention[t * source_steps + s];
  std::vector<AlignmentPoint> points;
  for (int j = 0; j < target_count && source_count > 0; ++j) {
    if (!has_pieces[static_cast<std::size_t>(j)]) continue;
    const auto row = pooled.begin() + static_cast<std::ptrdiff_t>(j) * source_count;
    points.push_back({static_cast<int>(std::max_element(row, row + source_count) - row), j});
  }
  std::sort(points.begin(), points.end(), [](const AlignmentPoint& a, const AlignmentPoint& b) {
    return a.source != b.source ? a.source < b.source : a.target < b.target;
  });
  return points;
}

}  // namespace nmt
