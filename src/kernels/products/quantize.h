#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// Symmetric linear quantization to int8: x ~ step q, step = max |x| / 127, q in [-127,127].

namespace nmt::kernels {
namespace {

/// |x| as bits, which order magnitudes as the floats do, with NaN above infinity.
inline std::uint32_t magnitude_bits(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFu;
}
/// The largest |x[i]|; not finite if any x[i] is not finite.
inline float largest_magnitude(const float* x, std::int64_t n) {
  std::uint32_t most = 0;
  for (std::int64_t i = 0; i < n; ++i) most = std::max(most, magnitude_bits(x[i]));
  return std::bit_cast<float>(most);
}

/// The quantization of values with this largest magnitude. NaN is the step of values that are not
/// all finite. The reciprocal of a smaller maximum than 1e-36 would overflow; such values become 0.
struct Step {
  explicit Step(float most)
      : size(std::isfinite(most) ? most / 127.0f : std::numeric_limits<float>::quiet_NaN()),
        inverse(std::isfinite(most) && most >= 1e-36f ? 127.0f / most : 0.0f) {}
  float size, inverse;
};

/// The integer nearest to the exact product x scale, ties to even: the same on every instruction
/// set. |x scale| is at most about 127. Adding 1.5 * 2^23, or 1.5 * 2^52 in double, rounds to an
/// integer and vectorizes on every target.
inline std::int32_t nearest(float x, float scale) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return std::bit_cast<std::int32_t>(std::fma(x, scale, 12582912.0f)) - 0x4B400000;
#else
  // A product of two floats is exact in double.
  const double shifted = static_cast<double>(x) * static_cast<double>(scale) + 6755399441055744.0;
  return static_cast<std::int32_t>(std::bit_cast<std::int64_t>(shifted) - 0x4338000000000000);
#endif
}

}  // namespace
}  // namespace nmt::kernels
