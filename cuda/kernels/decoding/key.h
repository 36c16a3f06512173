#pragma once

#include "cuda/kernels/reduce.h"

#include <bit>
#include <cstdint>

namespace nmt::cuda {

/// A float and its index as one integer that orders them: a greater float has a greater key, and of
/// equal floats the lower index has the greater key. NaN is above all floats; 0 is no key.
using Key = unsigned long long;

__device__ __forceinline__ Key key_of(float x, std::int64_t index) {
  std::uint32_t order = 0xFFFFFFFEu;
  if (x == x) {
    const auto bits = std::bit_cast<std::uint32_t>(x + 0.0f);  // -0 equals 0
    order = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  }
  return Key{order} << 32 | (0xFFFFFFFFu - static_cast<std::uint32_t>(index));
}
__device__ __forceinline__ std::int32_t index_of(Key key) {
  return static_cast<std::int32_t>(0xFFFFFFFFu - static_cast<std::uint32_t>(key));
}

/// The float of a key; -infinity of no key.
__device__ __forceinline__ float value_of(Key key) {
  if (key == 0) return -std::numeric_limits<float>::infinity();
  const auto order = static_cast<std::uint32_t>(key >> 32);
  return std::bit_cast<float>(order & 0x80000000u ? order & 0x7FFFFFFFu : ~order);
}

/// For block_reduce(): the maximum.
struct MaxKey {
  __device__ __forceinline__ static Key join(Key a, Key b) { return a > b ? a : b; }
  template <class>
  __device__ __forceinline__ static Key none() {
    return 0;
  }
};

}  // namespace nmt::cuda
