#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nmt::serve {

/// A part of a text.
struct TextPart {
  std::string text;
  bool translate = false;  ///< a sentence; else white space, line ends, or text without a letter
  bool operator==(const TextPart&) const = default;
};

/// Appends a text that stays as it is; a part before it that stays too is extended.
void append_verbatim(std::vector<TextPart>& parts, std::string_view text);
/// Appends a sentence, the white space at its ends being parts of their own. Without a letter or
/// digit it stays as it is.
void append_sentence(std::vector<TextPart>& parts, std::string_view text);

/// Splits a text of valid UTF-8 into lines and those into sentences (ICU, Unicode TR 29). Titles
/// ("Dr."), initials and usual abbreviations end no sentence. The texts of the parts in order are
/// the text. A sentence contains a letter or digit and no white space at its ends. Sentences of
/// more than `max_characters` code points are split at white space, or anywhere without any.
/// Thread-safe.
std::vector<TextPart> split_sentences(std::string_view text, const std::string& language,
                                      std::size_t max_characters);

}  // namespace nmt::serve
