#pragma once

#include <string_view>

namespace nmt {

/// Whether the normalization tables inside a serialized SentencePiece model only point within
/// themselves. SentencePiece walks them unchecked, so a broken or hostile file could make it read
/// anywhere.
bool charsmaps_are_sound(std::string_view model);

}  // namespace nmt
