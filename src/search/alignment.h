#pragma once

#include "config/enums/search_enums.h"
#include "nmt/vocabulary.h"
#include "text/document_context.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// A link between a source and a target position, both counted from 0.
struct AlignmentPoint {
  int source, target;
  bool operator==(const AlignmentPoint&) const = default;
};

/// The group (a word, or a single piece) of every piece; -1: none.
struct PieceGroups {
  std::vector<int> of_piece;
  int count = 0;
};

/// Every piece is its own group.
PieceGroups each_piece(std::size_t pieces);
/// Words of a sentence given as pieces in which U+2581 stands for a space. A piece of only spaces
/// belongs to the following word.
PieceGroups words_of_pieces(std::span<const std::string> pieces);
/// Words of `line` (split at ASCII white space) for its pieces `ids` in `vocabulary`. Handles words
/// that the normalization splits or removes. Pieces past a crop may be missing from `ids`.
PieceGroups words_of_line(const Vocabulary& vocabulary, std::string_view line,
                          std::span<const std::int32_t> ids);
/// Words of the text that the ids decode to.
PieceGroups words_of_ids(const Vocabulary& vocabulary, std::span<const std::int32_t> ids);

/// The groups of a line and its ids for `kind`. `in_pieces`: the line consists of pieces
/// (PieceText).
PieceGroups groups_of_line(AlignmentKind kind, const Vocabulary& vocabulary, std::string_view line,
                           std::span<const std::int32_t> ids, bool in_pieces);

/// The groups of a source line and its ids. Pieces of the context have none, so that positions are
/// those in the line.
PieceGroups groups_of_source(AlignmentKind kind, const Vocabulary& vocabulary,
                             std::string_view line, const SourceIds& source, bool in_pieces);

/// Links every target group to the source group with the largest attention, summed over the pieces
/// of both; ties go to the first. attention [T,S] may have additional rows and columns (</s>),
/// which are ignored. Sorted by source, then target position.
std::vector<AlignmentPoint> hard_alignment(std::span<const float> attention, int source_steps,
                                           const PieceGroups& source, const PieceGroups& target);

/// "0-0 1-2 2-1": the Pharaoh format.
std::string pharaoh(std::span<const AlignmentPoint> points);

}  // namespace nmt
