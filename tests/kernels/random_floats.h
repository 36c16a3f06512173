#pragma once

#include "core/rng.h"
#include "tests/kernels/guarded_memory.h"

#include <cstdint>

namespace nmt::kernels {

using Floats = test::Guarded<float>;

/// n floats, uniform in [mean-1, mean+1).
inline Floats random_floats(std::int64_t n, std::uint64_t seed, float mean = 0) {
  Rng rng(seed);
  Floats x(static_cast<std::size_t>(n));
  for (float& v : x) v = mean + 2 * rng.uniform() - 1;
  return x;
}

/// A matrix whose rows are `stride` apart; it ends with the last column of the last row.
inline Floats random_matrix(std::int64_t rows, std::int64_t columns, std::int64_t stride,
                            std::uint64_t seed) {
  return random_floats((rows - 1) * stride + columns, seed);
}

}  // namespace nmt::kernels
