#pragma once

#include "nmt/vocabulary.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// What is linked to what.
enum class AlignmentKind { none, word, subword };
/// The kind behind --alignment; "" is none. Error (usage): an unknown name.
AlignmentKind alignment_of(const std::string& name);

/// A link between a source and a target position, both from 0.
struct AlignmentPoint {
  int source, target;
  bool operator==(const AlignmentPoint&) const = default;
};

/// Which group (a word, or the piece itself) every piece belongs to; -1: none.
struct PieceGroups {
  std::vector<int> of_piece;
  int count = 0;
};

/// Every piece for itself.
PieceGroups each_piece(std::size_t pieces);
/// Words of a sentence given as pieces in which U+2581 stands for a space. A piece of spaces alone
/// goes with the word after it.
PieceGroups words_of_pieces(std::span<const std::string> pieces);
/// Words of `line` (split at ASCII white space) for the pieces that `vocabulary` made of it, also
/// where its normalization splits a word or lets one vanish. Pieces past a crop may be missing from
/// `ids`.
PieceGroups words_of_line(const Vocabulary& vocabulary, std::string_view line,
                          std::span<const std::int32_t> ids);
/// Words of the text that the ids decode to.
PieceGroups words_of_ids(const Vocabulary& vocabulary, std::span<const std::int32_t> ids);

/// The groups that `kind` links, of a line and its ids; `in_pieces`: the line is in pieces of the
/// vocabulary (PieceText).
PieceGroups groups_of_line(AlignmentKind kind, const Vocabulary& vocabulary, std::string_view line,
                           std::span<const std::int32_t> ids, bool in_pieces);

/// For every target group the source group that gets most attention, summed over the pieces of
/// both; ties go to the first. attention [T,S] may have more rows and columns than there are pieces
/// (those of </s>): they count for nothing. Sorted by source, then target position.
std::vector<AlignmentPoint> hard_alignment(std::span<const float> attention, int source_steps,
                                           const PieceGroups& source, const PieceGroups& target);

/// "0-0 1-2 2-1": the Pharaoh format.
std::string pharaoh(std::span<const AlignmentPoint> points);

}  // namespace nmt
