#include "train/parallel/agreement.h"

#include <iterator>

namespace nmt::train {

Decision agree(Communicator& ranks, const Decision& own) {
  if (ranks.size() == 1) return own;
  double votes[] = {own.stop == ExitStatus::terminated ? 1.0 : 0.0,
                    own.stop == ExitStatus::interrupted ? 1.0 : 0.0,
                    own.over && ranks.rank() == 0 ? 1.0 : 0.0, ranks.rank() == 0 ? own.done : 0.0};
  ranks.all_reduce_sum(votes, std::ssize(votes));
  return {votes[0] > 0   ? ExitStatus::terminated
          : votes[1] > 0 ? ExitStatus::interrupted
                         : ExitStatus::ok,
          votes[2] > 0, votes[3]};
}

SummedCounts sum(Communicator& ranks, const UpdateCounts& own, bool was_split) {
  const auto n = static_cast<std::size_t>(ranks.size()),
             me = static_cast<std::size_t>(ranks.rank());
  constexpr std::size_t counted = 3;
  std::vector<double> values(counted + n);
  values[0] = static_cast<double>(own.target), values[1] = static_cast<double>(own.source);
  values[2] = static_cast<double>(own.sentences);
  values[counted + me] = was_split ? 1 : 0;
  ranks.all_reduce_sum(values.data(), std::ssize(values));
  SummedCounts all;
  all.counts = {static_cast<std::int64_t>(values[0]), static_cast<std::int64_t>(values[1]),
                static_cast<std::int64_t>(values[2])};
  for (std::size_t rank = 0; rank < n; ++rank)
    if (values[counted + rank] > 0) all.split.push_back(static_cast<int>(rank));
  return all;
}

}  // namespace nmt::train
