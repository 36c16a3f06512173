#pragma once

#include <cstdint>
#include <vector>

namespace nmt::app::bench {

// Slow references in double for one sentence at a time, written directly from the equations. They
// share only the scalar unit mathematics with the kernels, which tests check against the papers.

using Doubles = std::vector<double>;

/// The recurrence of one sentence through a unit of units.def, without layer normalization and
/// without an initial state.
struct SentenceRecurrence {
  std::size_t unit = 0;  ///< index in kernels::units()
  std::int64_t steps = 0, width = 0;
  Doubles x;          ///< [T, inputs*H]
  Doubles recurrent;  ///< [H, (recurrents+late)*H]; empty without such products
  Doubles bias;       ///< [(recurrents+late)*H] or empty
  Doubles vectors;    ///< [vectors*H]
  Doubles positions;  ///< [T, position_vectors*H]
  bool reverse = false;
};
/// h after every step, [T,H].
Doubles run_recurrence(const SentenceRecurrence& sentence);

/// Attention of one sentence with S source and T target positions.
struct SentenceAttention {
  bool additive = true;
  std::int64_t steps = 0, queries = 0, space = 0, width = 0, heads = 1;  ///< S, T, A, M
  Doubles query, keys, memory, v;  ///< [T,A], [S,A], [S,M], [A]
};
/// The contexts [T,M].
Doubles run_attention(const SentenceAttention& sentence);

}  // namespace nmt::app::bench
