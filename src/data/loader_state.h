#pragma once

#include <cstdint>
#include <string>

namespace nmt {

/// Pairs that a pass over the corpus left out or shortened.
struct DropCounts {
  std::int64_t empty = 0;         ///< a side without a token
  std::int64_t too_long = 0;      ///< a side with more tokens than max-length
  std::int64_t cropped = 0;       ///< the same, but shortened instead of dropped
  std::int64_t longest = 0;       ///< tokens of the longest side among those too long or cropped
  std::int64_t longest_line = 0;  ///< its line, from 1

  DropCounts& operator+=(const DropCounts& other);
  bool operator==(const DropCounts&) const = default;
  /// For a user: "3 with an empty side dropped, 17 longer than 100 tokens (max-length) dropped (the
  /// longest has 512, line 4711)"; empty when none.
  std::string text(int max_length) const;
};

/// Where a loader stands after a batch: enough to go on with the very batches that would have
/// followed.
struct LoaderState {
  std::int64_t epoch = 0;   ///< passes done
  std::int64_t window = 0;  ///< place in this pass's order at which the present window begins
  std::int64_t batch = 0;   ///< batches of that window already given
  double epochs = 0;        ///< passes done, with the fraction of the present one
  DropCounts drops = {};    ///< of this pass, before that window

  bool operator==(const LoaderState&) const = default;
  /// One line of text, and back. Error (data): not such a line.
  std::string text() const;
  static LoaderState parse(const std::string& text);
};

}  // namespace nmt
