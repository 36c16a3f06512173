#pragma once

#include <cstddef>

namespace nmt::kernels {

/// A packed weight matrix as products read it: panels of float32 (pack() in gemm.h) or of int8 (gemm_int8.h). One of the two.
struct PackedWeight {
  const float* f32 = nullptr;
  const std::byte* i8 = nullptr;

  PackedWeight() = default;
  PackedWeight(const float* panels) : f32(panels) {}
  PackedWeight(const std::byte* panels) : i8(panels) {}
};

}  // namespace nmt::kernels
