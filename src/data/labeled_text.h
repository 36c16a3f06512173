#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nmt {

/// One line of a file of labeled texts.
struct LabeledText {
  std::string label;
  std::string text;
  std::string second;     ///< empty unless the file has pairs
  std::int64_t line = 0;  ///< from 1
};

/// A file of labeled texts, or of labeled pairs of texts.
struct LabeledTexts {
  std::vector<LabeledText> examples;
  bool has_pairs = false;
};

/// Reads lines "label TAB text", or "label TAB text TAB text" for pairs; the first line decides.
/// Blank lines are skipped. Errors: (usage) as LineReader::open; (data), with the number of the
/// line: another number of fields, an empty label or text; no line in the file.
LabeledTexts read_labeled_text(const std::string& path);

}  // namespace nmt
