#pragma once

#include <string_view>

namespace nmt {

/// Whether the normalization tables of a serialized SentencePiece model contain only offsets within
/// the tables. SentencePiece does not check them, so a corrupt or hostile file could cause
/// out-of-bounds reads.
bool charsmaps_are_sound(std::string_view model);

}  // namespace nmt
