#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace nmt {

/// A sequence of words or pieces that an output repeats and its source does not.
struct OutputRepetition {
  bool found = false;
  bool of_words = false;   ///< words of the text; else pieces of the vocabulary
  std::size_t begin = 0;   ///< the first occurrence, in words or pieces
  std::size_t length = 0;  ///< of the sequence
  std::size_t times = 0;   ///< occurrences in a row
};

/// Looks for a degenerate translation: a sequence of words that occurs three times in a row or,
/// where the source is short, twice; or a sequence of pieces that occurs five times. A short source
/// has at most four words and at most seven characters of scripts that write no spaces, such as
/// Chinese and Thai. What the source repeats as often is no degeneration, be it words or characters
/// of such scripts; a character that occurs twice in a row is not counted as a repetition, since it
/// is often one word. Words are separated by white space and compared without letter case (of
/// ASCII) and without punctuation at their ends.
OutputRepetition find_output_repetition(std::string_view source,
                                        std::span<const std::int32_t> source_ids,
                                        std::string_view output,
                                        std::span<const std::int32_t> output_ids);

/// The text with one occurrence of a repetition of words; punctuation behind the last one stays.
std::string without_repeated_words(std::string_view text, const OutputRepetition& repetition);

}  // namespace nmt
