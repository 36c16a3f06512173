#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nmt::serve {

/// A source and a target language by their codes, "en" and "pt-BR".
struct Direction {
  std::string source, target;
  bool operator==(const Direction&) const = default;
};

/// Reads "en-de" or, where a code has a hyphen, "pt-BR_en". Returns false for other texts.
bool parse_direction(std::string_view text, Direction& direction);
/// The English name of a language, "German"; the code itself where ICU does not know it.
std::string language_name(const std::string& code);

/// A language that a text may be in.
struct Detection {
  std::string language;
  double confidence = 0;  ///< percent
};

/// Whether this build has a language detector.
bool can_detect();
/// The languages of a text of valid UTF-8 among `candidates`, each once, most probable first; the
/// first candidate with confidence 0 where none is recognized. A recognized language is the
/// candidate with its code, such as "zh-Hant", or else the first one with its main code, "zh".
/// Thread-safe. Error (failed): there is no detector.
std::vector<Detection> detect_language(std::string_view text,
                                       const std::vector<std::string>& candidates);

}  // namespace nmt::serve
