#pragma once

#include "core/host_device.h"
#include "kernels/device_math.h"

#if !NMT_DEVICE_MATH
#include "core/math/exp_bounds.h"
#endif

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace nmt::math {

// Branch-free exp, log, tanh, sigmoid and softplus: compilers vectorize loops over them. In CUDA
// threads they use the special-function unit (device_math.h). In double they call the standard
// library, so gradient checks are exact. tests/kernels/math_test.cpp checks the error bounds over
// the whole float range, tests/emulator/device_math_test.cpp those of the device.

#if NMT_DEVICE_MATH
inline constexpr float exp_bound = 87.0f;
#endif

/// x within [-bound, bound]; NaN stays NaN.
NMT_HOST_DEVICE float clamp(float x, float bound) {
  x = x < -bound ? -bound : x;
  return x > bound ? bound : x;
}

/// Adding 1.5 * 2^23 to a float rounds it to the nearest integer n, which is then in the low bits;
/// 127 more make n the exponent bits of 2^n.
inline constexpr float round_to_exponent = 12582912.0f + 127.0f;

/// 2^n of n + round_to_exponent, for n in [-126, 126]. A factor instead of a sum of exponent bits,
/// so that every NaN propagates.
NMT_HOST_DEVICE float power_of_two(float shifted) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(shifted) << 23);
}

/// e^x, relative error below 2e-7 for x in [-87, 87]. x is clamped to this range, so the result is
/// never infinite or subnormal. NaN stays NaN. Cody-Waite reduction to [-ln2/2, ln2/2] and the
/// polynomial 1 + r + r^2 p(r) of degree 6 with the least relative error (Remez), 3.1e-9. On a
/// device below 4e-7: 2^x of the reduced argument by the special-function unit.
template <class T>
NMT_HOST_DEVICE T exp(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return std::exp(x);
  } else {
    x = clamp(x, exp_bound);
    const float shifted = x * 1.44269504088896341f + round_to_exponent;
    const float n = shifted - round_to_exponent;
#if NMT_DEVICE_MATH
    // x / ln2 - n, with 1 / ln2 in two parts.
    const float y = device::exp2(device::multiply_add(
        x, 1.92596299e-8f, device::multiply_add(x, 1.44269502162933349609f, -n)));
#else
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.381454006844052e-3f;
    p = p * r + 8.36874510768117e-3f;
    p = p * r + 4.1668390785636986e-2f;
    p = p * r + 1.6666520399056015e-1f;
    p = p * r + 4.9999993432119644e-1f;
    const float y = p * r * r + r + 1.0f;
#endif
    return y * power_of_two(shifted);
  }
}

/// 2^x, relative error below 1.5e-7 for x in [-126, 126]. x is clamped to this range, so the result
/// is never infinite or subnormal. NaN stays NaN. On the CPU 2^n, n the nearest integer, times the
/// polynomial of degree 6 in x - n that is 1 at 0 and has the least relative error (Remez), 2.6e-9.
/// On a device one instruction: 0 or infinity beyond the range of normal floats.
template <class T>
NMT_HOST_DEVICE T exp2(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return std::exp2(x);
  } else {
#if NMT_DEVICE_MATH
    return device::exp2(x);
#else
    x = clamp(x, exp2_bound);
    const float shifted = x + round_to_exponent, r = x - (shifted - round_to_exponent);
    float p = 1.559467759152009e-4f;
    p = p * r + 1.3406643906139608e-3f;
    p = p * r + 9.617692974745205e-3f;
    p = p * r + 5.5503105509922275e-2f;
    p = p * r + 2.4022652782877196e-1f;
    p = p * r + 6.93147214968042e-1f;
    p = p * r + 1.0f;
    return p * power_of_two(shifted);
#endif
  }
}

/// e^x of an x that is not positive, as in a softmax: absolute error below 2e-7, on a device 3e-7
/// and 0 below -87. The relative error grows with |x|, since x / ln2 is rounded.
template <class T>
NMT_HOST_DEVICE T exp_of_negative(T x) {
  if constexpr (std::is_same_v<T, double>)
    return std::exp(x);
  else
    return exp2<float>(x * 1.44269504088896341f);
}

/// 1 / x.
template <class T>
NMT_HOST_DEVICE T reciprocal(T x) {
#if NMT_DEVICE_MATH
  if constexpr (std::is_same_v<T, float>) return device::reciprocal(x);
#endif
  return T(1) / x;
}

/// 1 / (1 + e^-x), absolute error below 2e-7, on a device below 3e-7.
template <class T>
NMT_HOST_DEVICE T sigmoid(T x) {
  if constexpr (std::is_same_v<T, double>)
    return 1.0 / (1.0 + std::exp(-x));
  else
    return reciprocal(1.0f + exp2<float>(x * -1.44269504088896341f));
}

/// tanh x = 1 - 2 / (e^2x + 1), absolute error below 3e-7, on a device below 5e-7.
template <class T>
NMT_HOST_DEVICE T tanh(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return std::tanh(x);
  } else {
#if NMT_DEVICE_MATH
    return device::multiply_add(
        -2.0f, device::reciprocal(1.0f + device::exp2(x * 2.88539008177792681f)), 1.0f);
#else
    return 1.0f - 2.0f / (exp2<float>(x * 2.88539008177792681f) + 1.0f);
#endif
  }
}

/// log x, relative error below 1e-7 for normal floats. x is clamped to the normal floats, so the
/// result is finite; a negative x counts as the smallest of them. NaN stays NaN. The exponent times
/// ln2, and log(1 + r) = 2 artanh(r / (2 + r)) of the mantissa by its series.
template <class T>
NMT_HOST_DEVICE T log(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return std::log(x);
  } else {
    const float y = x < 1.17549435e-38f ? 1.17549435e-38f : x > 3.4028235e38f ? 3.4028235e38f : x;
    // The mantissa m in [sqrt(1/2), sqrt(2)) and the exponent n with y = m 2^n.
    const std::int32_t bits = std::bit_cast<std::int32_t>(y) - 0x3F3504F3;
    const float n = static_cast<float>(bits >> 23);
    const float r = std::bit_cast<float>((bits & 0x007FFFFF) + 0x3F3504F3) - 1.0f;
    const float s = r / (2.0f + r), q = s * s;  // |s| < 0.1716
    float series = 1.0f / 9.0f;
    series = series * q + 1.0f / 7.0f;
    series = series * q + 1.0f / 5.0f;
    series = series * q + 1.0f / 3.0f;
    // log(1 + r) = r - s * (r - 2 q series), which keeps the bits of a small r.
    const float fraction = r - s * (r - 2.0f * q * series);
    const float result = (fraction - n * 2.12194440e-4f) + n * 0.693359375f;
    return x != x ? x : result;
  }
}

/// The square root, correctly rounded.
template <class T>
NMT_HOST_DEVICE T sqrt(T x) {
  return std::sqrt(x);
}

/// log(1 + e^x), absolute error below 2e-7 of max(1, x), on a device below 4e-7. In float, log(1 +
/// y) = 2 artanh(y / (2 + y)) by its series, y = e^-|x|.
template <class T>
NMT_HOST_DEVICE T softplus(T x) {
  // Two comparisons with 0 would become a branch, and loops with it would not be vectorized.
  const T size = std::abs(x), y = exp<T>(-size), positive = T(0.5) * x + T(0.5) * size;
  if constexpr (std::is_same_v<T, double>) {
    return positive + std::log1p(y);
  } else {
    const T s = y / (T(2) + y), q = s * s;  // s in [0, 1/3]
    T series = T(1) / T(13);
    series = series * q + T(1) / T(11);
    series = series * q + T(1) / T(9);
    series = series * q + T(1) / T(7);
    series = series * q + T(1) / T(5);
    series = series * q + T(1) / T(3);
    series = series * q + T(1);
    return positive + T(2) * s * series;
  }
}

/// log x of a positive normal x, relative error below 1e-15 outside [0.99, 1.01], where the
/// absolute error is below 1e-17. The same bits on every processor: std::log takes other
/// instructions where there are any. Other x: as std::log. log(2^n m) = n log 2 + 2 artanh((m - 1)
/// / (m + 1)), m in [sqrt(1/2), sqrt(2)), by its series.
inline double portable_log(double x) {
  if (!(x >= std::numeric_limits<double>::min()) || x > std::numeric_limits<double>::max())
    return std::log(x);
  constexpr std::uint64_t root_half = 0x3FE6A09E667F3BCDu;  // sqrt(1/2)
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const auto n = static_cast<std::int64_t>(bits - root_half) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(n) << 52));
  const double s = (m - 1.0) / (m + 1.0), q = s * s;  // |s| < 0.1716
  double series = 0;
  for (int k = 25; k > 1; k -= 2) series = series * q + 1.0 / k;
  series = series * q;
  // log 2 in two parts: n times the first is exact.
  const double e = static_cast<double>(n);
  return e * 0x1.62e42fefa38p-1 + (2.0 * s + (2.0 * s * series + e * 0x1.ef35793c7673p-45));
}

}  // namespace nmt::math
