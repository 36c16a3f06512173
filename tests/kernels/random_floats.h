#pragma once

#include "core/rng.h"

#include <cstdint>
#include <vector>

namespace nmt::kernels {

using Floats = std::vector<float>;

/// n floats, uniform in [mean-1, mean+1).
inline Floats random_floats(std::int64_t n, std::uint64_t seed, float mean = 0) {
  Rng rng(seed);
  Floats x(static_cast<std::size_t>(n));
  for (float& v : x) v = mean + 2 * rng.uniform() - 1;
  return x;
}

}  // namespace nmt::kernels
