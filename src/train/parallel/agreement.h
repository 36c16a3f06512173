#pragma once

#include "core/error.h"
#include "train/parallel/communicator.h"

#include <cstdint>
#include <vector>

namespace nmt::train {

/// What the ranks of a training do next.
struct Decision {
  ExitStatus stop = ExitStatus::ok;  ///< the request to stop; ok: none
  bool over = false;                 ///< whether a stop rule holds
  double done = 0;                   ///< share of the training that is over, for the cool-down
};
/// The decision of all ranks, from that of each. A request to stop that any of them got counts for
/// all; what ends or cools down by the clock does so by rank 0's.
Decision agree(Communicator& ranks, const Decision& own);

/// Counts of an update.
struct UpdateCounts {
  std::int64_t target = 0, source = 0, sentences = 0;
};
/// The counts of all ranks' shares of an update.
struct SummedCounts {
  UpdateCounts counts;
  std::vector<int> split;  ///< the ranks that split a batch for lack of memory
};
/// `was_split`: whether this rank split a batch.
SummedCounts sum(Communicator& ranks, const UpdateCounts& own, bool was_split);

}  // namespace nmt::train
