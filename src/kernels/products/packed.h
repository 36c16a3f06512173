#pragma once

#include <cstddef>
#include <cstdint>

namespace nmt::kernels {

/// A packed weight matrix: panels of float32 (pack() in gemm.h), bfloat16 (gemm_bf16.h) or int8
/// (gemm_int8.h). Exactly one pointer is set.
struct PackedWeight {
  const float* f32 = nullptr;
  const std::uint16_t* bf16 = nullptr;
  const std::byte* i8 = nullptr;

  PackedWeight() = default;
  PackedWeight(const float* panels) : f32(panels) {}
  PackedWeight(const std::uint16_t* panels) : bf16(panels) {}
  PackedWeight(const std::byte* panels) : i8(panels) {}
};

}  // namespace nmt::kernels
