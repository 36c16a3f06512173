#pragma once

namespace nmt::kernels {

/// The instruction set that the loaded kernels were built for: "x86-64-v3 (AVX2)".
const char* instruction_set();

}  // namespace nmt::kernels
