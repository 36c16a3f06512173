#pragma once

#include <cstdint>
#include <span>

namespace nmt {

/// A stretch that stands several times in a row.
struct Repetition {
  int times = 1;   ///< 1: nothing is repeated
  int length = 0;  ///< pieces of the stretch
  int begin = 0;   ///< where it stands first
};

/// The stretch of at most 8 pieces that is repeated most often in a row, the shortest and first of
/// equals. A model that has lost its thread writes one thing over and over.
Repetition longest_repetition(std::span<const std::int32_t> ids);

}  // namespace nmt
