#pragma once

#include "config/enums/search_enums.h"
#include "nmt/vocabulary.h"
#include "text/alignment.h"
#include "text/document_context.h"

#include <span>
#include <string_view>
#include <vector>

namespace nmt {

/// The groups of a line and its ids for `kind`. `in_pieces`: the line consists of pieces
/// (PieceText).
PieceGroups groups_of_line(AlignmentKind kind, const Vocabulary& vocabulary, std::string_view line,
                           std::span<const std::int32_t> ids, bool in_pieces);

/// The groups of a source line and its ids. Pieces of the context have none, so that positions are
/// those in the line.
PieceGroups groups_of_source(AlignmentKind kind, const Vocabulary& vocabulary,
                             std::string_view line, const SourceIds& source, bool in_pieces);

/// Links every target group, up to the last that has a piece, to the source group with the largest
/// attention, summed over the pieces of both; ties go to the first. Groups without pieces get no
/// link and need no memory. attention [T,S] may have additional rows and columns (</s>), which are
/// ignored. Sorted by source, then target position.
std::vector<AlignmentPoint> hard_alignment(std::span<const float> attention, int source_steps,
                                           const PieceGroups& source, const PieceGroups& target);

}  // namespace nmt
