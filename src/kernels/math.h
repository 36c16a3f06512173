#pragma once

#include "core/host_device.h"
#include "kernels/device_math.h"

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

/// e^x, relative error below 2e-7 for x in [-87, 88]. x is clamped to this range, so the result is
/// never infinite or subnormal. NaN stays NaN. Cody-Waite reduction to [-ln2/2, ln2/2] and a
/// polynomial of degree 6 (coefficients: Cephes expf, Moshier). On a device below 4e-7: 2^x of the
/// reduced argument by the special-function unit.
template <class T>
NMT_HOST_DEVICE T exp(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return std::exp(x);
  } else {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    // Adding 1.5 * 2^23 rounds to the nearest integer.
    const float shifted = x * 1.44269504088896341f + 12582912.0f;
    const float n = shifted - 12582912.0f;
#if NMT_DEVICE_MATH
    // x / ln2 - n, with 1 / ln2 in two parts.
    const float y = device::exp2(device::multiply_add(
        x, 1.92596299e-8f, device::multiply_add(x, 1.44269502162933349609f, -n)));
#else
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    const float y = p * r * r + r + 1.0f;
#endif
    // Multiply by 2^n instead of adding n to the exponent bits of y, so that every NaN propagates.
    const std::int32_t exponent =
        static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted)) - 0x4B400000 + 127;
    return y * std::bit_cast<float>(static_cast<std::uint32_t>(exponent) << 23);
  }
}

/// e^x of an x that is not positive, as in a softmax: absolute error below 3e-7. On a device
/// two instructions, 0 below -87, and a relative error that grows with |x|.
template <class T>
NMT_HOST_DEVICE T exp_of_negative(T x) {
#if NMT_DEVICE_MATH
  if constexpr (std::is_same_v<T, float>) return device::exp2(x * 1.44269504088896341f);
#endif
  return exp<T>(x);
}

/// 1 / (1 + e^-x), absolute error below 2e-7, on a device below 3e-7.
template <class T>
NMT_HOST_DEVICE T sigmoid(T x) {
#if NMT_DEVICE_MATH
  if constexpr (std::is_same_v<T, float>)
    return device::reciprocal(1.0f + device::exp2(x * -1.44269504088896341f));
#endif
  return T(1) / (T(1) + exp<T>(-x));
}

/// tanh x = 1 - 2 / (e^2x + 1), absolute error below 3e-7, on a device below 5e-7.
template <class T>
NMT_HOST_DEVICE T tanh(T x) {
#if NMT_DEVICE_MATH
  if constexpr (std::is_same_v<T, float>)
    return device::multiply_add(
        -2.0f, device::reciprocal(1.0f + device::exp2(x * 2.88539008177792681f)), 1.0f);
#endif
  if constexpr (std::is_same_v<T, double>) {
    return std::tanh(x);
  } else {
    return T(1) - T(2) / (exp<T>(T(2) * x) + T(1));
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
