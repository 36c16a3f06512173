#pragma once

// Products in double of inputs rounded one by one.

#include <cmath>
#include <cstdint>

namespace nmt::test {

/// Rounds to `bits` bits of significand, to nearest, ties to even.
inline double rounded(float x, int bits) {
  if (x == 0.0f || !std::isfinite(x)) return static_cast<double>(x);
  int exponent = 0;
  const double significand = std::frexp(static_cast<double>(x), &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(significand, bits)), exponent - bits);
}

struct Sizes {
  std::int64_t m, n, k;
};

/// op(X)[i,j] of a matrix in rows of ld.
struct View {
  const float* data;
  std::int64_t ld;
  bool transpose = false;
  float operator()(std::int64_t i, std::int64_t j) const {
    return transpose ? data[j * ld + i] : data[i * ld + j];
  }
};

inline void multiply_rounded(const Sizes& s, int bits, const View& a, const View& b, float beta,
                             float* c, std::int64_t ldc) {
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) {
      double sum = beta == 0.0f ? 0.0 : static_cast<double>(beta * c[i * ldc + j]);
      for (std::int64_t l = 0; l < s.k; ++l) sum += rounded(a(i, l), bits) * rounded(b(l, j), bits);
      c[i * ldc + j] = static_cast<float>(sum);
    }
}

}  // namespace nmt::test
