#include "search/alignment.h"

#include "core/error.h"

#include <algorithm>
#include <cstddef>

namespace nmt {
namespace {

// The groups that have a piece, ascending: far fewer than groups.count where a line is cropped or
// normalization removes its words.
std::vector<int> groups_with_pieces(const PieceGroups& groups) {
  std::vector<int> present;
  for (const int group : groups.of_piece)
    if (group >= 0) present.push_back(group);
  std::sort(present.begin(), present.end());
  present.erase(std::unique(present.begin(), present.end()), present.end());
  return present;
}

// The index in `present` of the group of each piece; 0 for a piece without a group.
std::vector<std::size_t> positions_of(const PieceGroups& groups, std::span<const int> present) {
  std::vector<std::size_t> positions;
  positions.reserve(groups.of_piece.size());
  for (const int group : groups.of_piece)
    positions.push_back(
        group < 0 ? 0
                  : static_cast<std::size_t>(
                        std::lower_bound(present.begin(), present.end(), group) - present.begin()));
  return positions;
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

std::vector<AlignmentPoint> hard_alignment(std::span<const float> attention, int source_steps,
                                           const PieceGroups& source, const PieceGroups& target) {
  const std::size_t columns = source.of_piece.size(), rows = target.of_piece.size();
  NMT_CHECK(
      columns <= static_cast<std::size_t>(source_steps) && rows * source_steps <= attention.size(),
      "attention with {} values over {} source steps is too small for {} source and {} target "
      "pieces",
      attention.size(), source_steps, columns, rows);
  const std::vector<int> source_groups = groups_with_pieces(source),
                         target_groups = groups_with_pieces(target);
  if (source_groups.empty()) return {};
  const std::vector<std::size_t> source_columns = positions_of(source, source_groups),
                                 target_rows = positions_of(target, target_groups);
  const std::size_t width = source_groups.size();
  std::vector<double> pooled(width * target_groups.size(), 0.0);
  for (std::size_t t = 0; t < rows; ++t)
    for (std::size_t s = 0; s < columns; ++s)
      if (target.of_piece[t] >= 0 && source.of_piece[s] >= 0)
        pooled[target_rows[t] * width + source_columns[s]] += attention[t * source_steps + s];
  std::vector<AlignmentPoint> points;
  for (std::size_t j = 0; j < target_groups.size(); ++j) {
    const auto row = pooled.begin() + static_cast<std::ptrdiff_t>(j * width);
    const auto best = std::max_element(row, row + static_cast<std::ptrdiff_t>(width)) - row;
    points.push_back({source_groups[static_cast<std::size_t>(best)], target_groups[j]});
  }
  std::sort(points.begin(), points.end(), [](const AlignmentPoint& a, const AlignmentPoint& b) {
    return a.source != b.source ? a.source < b.source : a.target < b.target;
  });
  return points;
}

}  // namespace nmt
