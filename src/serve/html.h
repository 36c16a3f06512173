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

}  // namespace nmt::serve
