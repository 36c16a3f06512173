#pragma once

#include "core/log.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <new>
#include <span>
#include <utility>

namespace nmt {

/// Runs a batch in halves, and those in halves again, where memory does not suffice for the whole;
/// says so once. What was too large once is cut at once from then on.
class OomSplitter {
 public:
  /// Calls body(first, count) for parts of a batch whose sentences have these lengths; a part for
  /// which it throws std::bad_alloc is run again in halves. Throws it on for a single sentence.
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
    if (count == 1 || padded(lengths, first, count) <= most_) {
      try {
        body(first, count);
        return;
      } catch (const std::bad_alloc&) {
        if (count == 1) throw;
      }
      if (!std::exchange(told_, true))
        log::warn(
            "out of memory in a batch of {} sentences: it is done in parts, as will be others of "
            "its size; a "
            "smaller --mini-batch avoids it",
            count);
      most_ = std::max(padded(lengths, first, half), padded(lengths, first + half, count - half));
    }
    part(lengths, first, half, body);
    part(lengths, first + half, count - half, body);
  }

  std::size_t most_ = std::numeric_limits<std::size_t>::max();  // padded tokens
  bool told_ = false;
};

}  // namespace nmt
