#pragma once

#include "text/spans.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// A line cut at its spans: text to translate, and what lies between as it is in the translation.
struct LineParts {
  struct Part {
    std::string text;        ///< as it is, or the source of the translation
    bool translate = false;  ///< it has a letter and lies between spans
  };
  std::vector<Part> parts;

  /// Parts in the order of the line; white space at the ends of a text is a part of its own, with
  /// the marks without a letter that stand between a span and white space.
  LineParts(std::string_view line, const std::vector<TextSpan>& spans);
  /// The line from translations of the parts to translate, in their order. A full stop or a similar
  /// mark that a translation has at its end and its source has not is dropped.
  std::string join(const std::vector<std::string>& translations) const;
};

}  // namespace nmt
