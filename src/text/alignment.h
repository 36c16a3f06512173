#pragma once

#include "nmt/vocabulary.h"

#include <cstdint>
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

/// "0-0 1-2 2-1": the Pharaoh format.
std::string pharaoh(std::span<const AlignmentPoint> points);

/// Reads a line of links in the Pharaoh format between sentences of so many words; an empty line
/// has none. Error (data), at line `number` of `path`: anything else than links SOURCE-TARGET, or a
/// position beyond the sentence.
std::vector<AlignmentPoint> read_pharaoh(std::string_view line, std::size_t source_words,
                                         std::size_t target_words, std::string_view path,
                                         std::int64_t number);

/// Links between groups as links between their pieces: each source piece of a group with each
/// target piece of the other. Sorted by target, then source piece, each once. Groups beyond those
/// of a side have no pieces.
std::vector<AlignmentPoint> piece_links(std::span<const AlignmentPoint> links,
                                        const PieceGroups& source, const PieceGroups& target);

}  // namespace nmt
