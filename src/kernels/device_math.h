#pragma once

// The special-function unit of a GPU, for the device's versions in math.h. Compiled for a device,
// these are single instructions. The emulator (tests/emulator) compiles kernels with
// NMT_EMULATED_DEVICE_MATH and gets the largest error that NVIDIA documents for them (PTX ISA,
// ex2.approx.ftz.f32: 2 ulp; rcp.approx.ftz.f32 and sqrt.approx.ftz.f32: 1 ulp), up or down by the
// bits of the argument.

#include "core/host_device.h"

#include <bit>
#include <cmath>
#include <cstdint>

#if defined(__CUDA_ARCH__) || defined(NMT_EMULATED_DEVICE_MATH)
#define NMT_DEVICE_MATH 1
#else
#define NMT_DEVICE_MATH 0
#endif

#if NMT_DEVICE_MATH

namespace nmt::math::device {

#if defined(__CUDA_ARCH__)

/// 2^x; 0 and infinity beyond the range of normal floats.
__device__ __forceinline__ float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// 1/x; 0 for infinity.
__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// The square root; 0 below the range of normal floats.
__device__ __forceinline__ float square_root(float x) {
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float multiply_add(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}

#else

/// y wrong by so many units in the last place, in a direction that depends on the bits of x.
NMT_HOST_DEVICE float off_by(double y, int ulps, float x) {
  const float near = static_cast<float>(y);
  if (!(std::abs(near) < INFINITY)) return near;
  if (std::abs(near) < 1.17549435e-38f) return 0.0f;  // ftz
  const std::uint32_t hash = std::bit_cast<std::uint32_t>(x) * 2654435761u;
  return near * (1.0f + static_cast<float>(hash & 0x10000u ? ulps : -ulps) * 0x1p-23f);
}
NMT_HOST_DEVICE float exp2(float x) {
  if (std::abs(x) < 1.17549435e-38f) return 1.0f;  // exact, as documented
  return off_by(std::exp2(static_cast<double>(x)), 2, x);
}
NMT_HOST_DEVICE float reciprocal(float x) {
  return off_by(1.0 / static_cast<double>(x), 1, x);
}
NMT_HOST_DEVICE float square_root(float x) {
  if (std::abs(x) < 1.17549435e-38f) return 0.0f;  // ftz
  return off_by(std::sqrt(static_cast<double>(x)), 1, x);
}
NMT_HOST_DEVICE float multiply_add(float a, float b, float c) {
  return std::fma(a, b, c);
}

#endif

}  // namespace nmt::math::device

#endif
