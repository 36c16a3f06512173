#pragma once

namespace nmt::kernels {

/// Intel Advanced Matrix Extensions: products of tiles of bfloat16 (AMX-BF16) and of int8
/// (AMX-INT8).
struct AmxSupport {
  bool bfloat16 = false, int8 = false;
};

/// What the processor has and the operating system lets this process use. The first call asks Linux
/// for the state of the tiles, for all threads of the process.
AmxSupport amx_support();
/// amx_support(), or nothing with the environment variable NMT_AMX set to 0, for tests.
AmxSupport amx_to_use();

}  // namespace nmt::kernels
