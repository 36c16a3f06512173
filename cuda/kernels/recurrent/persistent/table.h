#pragma once

// Which recurrences run persistently with `recurrences: auto`. The bounds without layer
// normalization lie between sizes that an H200 has measured: gru and lstm with 128 sentences,
// widths 512 and 1024 (docs/benchmarks/gpu.md). Those with normalization are predictions. The rows
// "recurrences" of nmt-bench measure both paths.

#include "kernels/recurrent/recurrence.h"

#include <cstdint>

namespace nmt::cuda {

/// Recurrent multiply-adds of a step, B H^2 (R + L) / K, from which on the launches of every step
/// are preferred.
struct PersistentBound {
  bool normalizes, bfloat16, backward;
  double products;
  const char* source;
};
inline constexpr PersistentBound persistent_bounds[] = {
    {false, false, false, 2.5e8, "measured"}, {false, false, true, 2.0e8, "measured"},
    {false, true, false, 6.0e8, "measured"},  {false, true, true, 4.5e8, "measured"},
    {true, false, false, 2.1e6, "predicted"}, {true, false, true, 5.2e5, "predicted"},
    {true, true, false, 8.4e6, "predicted"},  {true, true, true, 2.1e6, "predicted"},
};

inline bool is_faster_persistently(const kernels::Cell& cell, std::int64_t batch, bool bfloat16,
                                   bool backward) {
  if (cell.rearrange && cell.groups > 1) return false;  // there is no prediction
  const auto width = static_cast<double>(cell.width);
  const double products = static_cast<double>(batch * (cell.unit->recurrents + cell.unit->late)) *
                          width * width / static_cast<double>(cell.groups);
  const bool normalizes = cell.gain != nullptr;
  for (const PersistentBound& bound : persistent_bounds)
    if (bound.normalizes == normalizes && bound.bfloat16 == bfloat16 && bound.backward == backward)
      return products < bound.products;
  return false;
}

}  // namespace nmt::cuda
