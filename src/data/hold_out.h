#pragma once

#include "data/corpus.h"

#include <cstdint>
#include <vector>

namespace nmt {

/// Pairs taken out of a training corpus to measure on.
struct HoldOut {
  std::vector<std::int64_t> development;  ///< lines from 0, sorted
  /// Sorted: those, and every line that shares its source or target with one.
  std::vector<std::int64_t> excluded;
};

/// Picks n pairs at random (by the seed alone) such that no pair outside `excluded` has the source
/// or the target of one of them. Among those drawn, pairs whose sides stand nowhere else come
/// first, so that little is lost; pairs with a blank side, or a side longer than `longest` bytes,
/// are not taken. Error (data): fewer than n can be taken, or no other pair would be left.
HoldOut hold_out(const ParallelCorpus& corpus, std::int64_t n, std::uint64_t seed,
                 std::size_t longest = 600);

}  // namespace nmt
