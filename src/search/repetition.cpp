#include "search/repetition.h"

namespace nmt {

Repetition longest_repetition(std::span<const std::int32_t> ids) {
  constexpr int longest = 8;
  const int n = static_cast<int>(ids.size());
  Repetition best;
  for (int length = 1; length <= longest && 2 * length <= n; ++length) {
    // A run of m equal pairs at distance `length` is a sequence that occurs m / length + 1 times.
    int run = 0;
    for (int i = length; i < n; ++i) {
      run = ids[static_cast<std::size_t>(i)] == ids[static_cast<std::size_t>(i - length)] ? run + 1
                                                                                          : 0;
      if (const int times = run / length + 1; times > best.times)
        best = {times, length, i - run - length + 1};
    }
  }
  return best;
}

}  // namespace nmt
