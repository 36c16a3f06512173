#pragma once

#include "text/spans.h"

#include <string>
#include <string_view>
#include <vector>

namespace nmt::serve {

/// What begins and ends a marked span (SpanKind::marked).
inline constexpr std::string_view open_marker = "<keep>", close_marker = "</keep>";

/// The marked spans of a text.
inline std::vector<TextSpan> marked_spans(std::string_view text) {
  return find_spans(text, {.marked = true});
}

/// A translation of a sentence with the markers that the sentence has: around whole words that are
/// the text of a span, or else around any occurrence. Unchanged where the markers would not enclose
/// the text of the spans and no more.
std::string with_markers(std::string_view sentence, std::string translation);

}  // namespace nmt::serve
