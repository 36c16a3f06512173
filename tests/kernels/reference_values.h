#pragma once

#include "tests/kernels/random_floats.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace nmt::kernels {

/// Index of a value of a row-major matrix.
inline std::size_t at(std::int64_t row, std::int64_t stride, std::int64_t column) {
  return static_cast<std::size_t>(row * stride + column);
}

/// A [m,k], or the transpose of A [k,m].
inline Floats op(bool transpose, std::int64_t m, std::int64_t k, const Floats& a) {
  if (!transpose) return a;
  Floats rows(a.size());
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t l = 0; l < k; ++l) rows[at(i, k, l)] = a[at(l, m, i)];
  return rows;
}

/// Rounds to eight significant bits, ties to even, as bfloat16 does; computed in double.
inline double rounded(float value) {
  if (value == 0.0f) return 0.0;
  int exponent;
  const double fraction = std::frexp(double{value}, &exponent);  // [0.5, 1)
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
}

}  // namespace nmt::kernels
