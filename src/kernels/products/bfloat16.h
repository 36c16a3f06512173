#pragma once

#include "core/host_device.h"

#include <bit>
#include <cstdint>

namespace nmt::kernels {

/// The upper half of a float32: 8 bits of exponent, 7 bits of fraction.
using Bfloat16 = std::uint16_t;

/// Rounds to nearest, ties to even. Values beyond the largest, 3.39e38, become infinite. NaN stays
/// NaN. On a device from compute capability 8.0 on one instruction; it has one NaN.
NMT_HOST_DEVICE Bfloat16 to_bf16(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  Bfloat16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
#else
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (x != x) return static_cast<Bfloat16>(bits >> 16 | 0x40u);
  return static_cast<Bfloat16>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
#endif
}

NMT_HOST_DEVICE float from_bf16(Bfloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}

}  // namespace nmt::kernels
