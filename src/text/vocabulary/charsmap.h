#pragma once

#include <string_view>

namespace nmt {

/// Whether a normalization table of a SentencePiece model contains only offsets within the table.
/// SentencePiece does not check them, so a corrupt or hostile file could cause out-of-bounds reads.
bool charsmap_is_sound(std::string_view table);

}  // namespace nmt
