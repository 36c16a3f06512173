#pragma once

namespace nmt::kernels {

/// The instruction set of the loaded kernels, for example "x86-64-v3 (AVX2)".
const char* instruction_set();

}  // namespace nmt::kernels
