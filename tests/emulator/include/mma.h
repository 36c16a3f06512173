#pragma once

// Tensor cores for the emulator: the instruction mma.sync.m16n8k16 for bfloat16, with the layout of
// its operands that NVIDIA documents. It detects operations that not all lanes of a warp make
// together.

#include "cuda_runtime.h"

#include <array>

namespace nmt::emulator {

inline void multiply_tile(float (&sum)[4], const std::array<unsigned, 4>& a,
                          const std::array<unsigned, 2>& b,
                          std::source_location at = std::source_location::current()) {
  matrix_operation({a.data(), b.data(), sum}, at);
}

}  // namespace nmt::emulator
