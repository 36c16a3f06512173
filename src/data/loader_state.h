#pragma once

#include <cstdint>
#include <string>

namespace nmt {

/// Pairs that an epoch dropped or cropped.
struct DropCounts {
  std::int64_t empty = 0;         ///< pairs with an empty side
  std::int64_t too_long = 0;      ///< pairs with a side longer than max-length
  std::int64_t cropped = 0;       ///< such pairs that were cropped instead of dropped
  std::int64_t longest = 0;       ///< length of the longest side of the pairs too long or cropped
  std::int64_t longest_line = 0;  ///< its line, from 1

  DropCounts& operator+=(const DropCounts& other);
  bool operator==(const DropCounts&) const = default;
  /// Log text: "3 with an empty side dropped, 17 longer than 100 tokens (max-length) dropped (the
  /// longest has 512, line 4711)"; empty when there are none. `words`: the unit of max-length.
  std::string text(int max_length, bool words = false) const;
};

/// The position of a loader after a batch. A loader restored from it yields exactly the batches
/// that would have followed.
struct LoaderState {
  std::int64_t epoch = 0;   ///< completed epochs
  std::int64_t window = 0;  ///< index in the epoch's order at which the current window begins
  std::int64_t batch = 0;   ///< batches of this window already returned
  double epochs = 0;        ///< completed epochs plus the fraction of the current one
  DropCounts drops = {};    ///< in this epoch, before this window

  bool operator==(const LoaderState&) const = default;
  /// Serialization as one line of text. Error (data): malformed text.
  std::string text() const;
  static LoaderState parse(const std::string& text);
};

}  // namespace nmt
