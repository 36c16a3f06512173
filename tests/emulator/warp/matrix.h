#pragma once

// Operations of tensor cores (tests/emulator/include/mma.h) that the 32 lanes of a warp make
// together.

#include "emulator.h"

#include <array>

namespace nmt::emulator {

/// Makes the operation of a warp.
void run_matrix_operation(const std::array<const MatrixOperation*, warp_size>& lanes);

}  // namespace nmt::emulator
