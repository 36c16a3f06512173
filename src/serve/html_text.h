#pragma once

#include <string>
#include <string_view>

namespace nmt::serve {

/// Resolves the character references of a text: numbers, and the names of Latin-1 and of usual
/// punctuation. Others stay as they are.
std::string decode_html(std::string_view text);
/// Replaces &, <, > and the no-break space by references; references that decode_html() leaves
/// alone stay.
std::string encode_html(std::string_view text);

}  // namespace nmt::serve
