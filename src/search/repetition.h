#pragma once

#include <cstdint>
#include <span>

namespace nmt {

/// A sequence of pieces that is repeated consecutively.
struct Repetition {
  int times = 1;   ///< number of occurrences; 1: no repetition
  int length = 0;  ///< pieces in the sequence
  int begin = 0;   ///< first occurrence
};

/// The sequence of at most 8 pieces with the most consecutive occurrences; the shortest, then the
/// first, for ties. Degenerate translations repeat one sequence many times.
Repetition longest_repetition(std::span<const std::int32_t> ids);

}  // namespace nmt
