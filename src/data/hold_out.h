#pragma once

#include "data/corpus.h"

#include <cstdint>
#include <vector>

namespace nmt {

/// Pairs held out of a training corpus as a development set.
struct HoldOut {
  std::vector<std::int64_t> development;  ///< lines from 0, sorted
  /// Sorted: these lines and all lines with the same source or target as one of them.
  std::vector<std::int64_t> excluded;
};

/// Draws n pairs at random, determined by the seed, so that no training pair outside `excluded` has
/// the source or the target of a held-out pair. Pairs whose sentences are unique in the corpus are
/// preferred, so that few pairs are lost. Pairs with a blank side, or a side longer than
/// `max_bytes`, are not held out. Error (data): fewer than n pairs qualify, or no training pair
/// would remain.
HoldOut hold_out(const ParallelCorpus& corpus, std::int64_t n, std::uint64_t seed,
                 std::size_t max_bytes = 600);

}  // namespace nmt
