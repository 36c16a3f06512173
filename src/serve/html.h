#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nmt::serve {

/// A part of an HTML text, as it stands there.
struct HtmlPart {
  std::string source;
  bool is_text = false;      ///< to translate; else tags, comments and what no reader sees as text
  bool keeps_lines = false;  ///< text of pre, textarea or listing: line ends show
  bool operator==(const HtmlPart&) const = default;
};

/// Splits HTML at its tags; the sources of the parts in order are the HTML. Any bytes are valid: a
/// "<" that begins no tag is text. The contents of script, style, code, kbd, samp, var, svg, math,
/// template and keep, and of elements with translate="no" or the class "notranslate", are no text.
std::vector<HtmlPart> split_html(std::string_view html);

/// Resolves the character references of a text: numbers, and the names of Latin-1 and of usual
/// punctuation. Others stay as they are.
std::string decode_html(std::string_view text);
/// Replaces &, <, > and the no-break space by references; references that decode_html() leaves
/// alone stay.
std::string encode_html(std::string_view text);

}  // namespace nmt::serve
