#pragma once

#include "core/log.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <limits>
#include <new>
#include <span>

namespace nmt {

/// Recovers from running out of memory: splits a batch recursively into halves and logs this once.
/// Batches of a size that failed before are split right away. Several threads may use one.
class OomSplitter {
 public:
  /// The option of the batch size, which the message names.
  explicit OomSplitter(const char* option) : option_(option) {}
  /// Calls body(first, count) for parts of a batch whose sentences have these lengths. A part for
  /// which it throws std::bad_alloc is retried in halves; for a single sentence the exception is
  /// rethrown.
  template <class Body>
  void run(std::span<const std::size_t> lengths, Body&& body) {
    part(lengths, 0, lengths.size(), body);
  }

 private:
  static std::size_t padded(std::span<const std::size_t> lengths, std::size_t first,
                            std::size_t count) {
    const auto part = lengths.subspan(first, count);
    return count * (*std::max_element(part.begin(), part.end()) + 1);
  }

  template <class Body>
  void part(std::span<const std::size_t> lengths, std::size_t first, std::size_t count,
            Body& body) {
    if (count == 0) return;
    const std::size_t half = (count + 1) / 2;
    if (count == 1 || padded(lengths, first, count) <= max_padded_) {
      try {
        body(first, count);
        return;
      } catch (const std::bad_alloc&) {
        if (count == 1) throw;
      }
      if (!warned_.exchange(true))
        log::warn(
            "out of memory in a batch of {} sentences; it and later batches of this size are "
            "split; a smaller {} avoids this",
            count, option_);
      lower_limit(
          std::max(padded(lengths, first, half), padded(lengths, first + half, count - half)));
    }
    part(lengths, first, half, body);
    part(lengths, first + half, count - half, body);
  }

  // Another worker may have lowered it further.
  void lower_limit(std::size_t limit) {
    std::size_t present = max_padded_;
    while (limit < present && !max_padded_.compare_exchange_weak(present, limit)) {
    }
  }

  const char* const option_;
  // Padded tokens.
  std::atomic<std::size_t> max_padded_{std::numeric_limits<std::size_t>::max()};
  std::atomic<bool> warned_{false};
};

}  // namespace nmt
