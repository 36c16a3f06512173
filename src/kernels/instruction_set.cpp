#include "kernels/instruction_set.h"

namespace nmt::kernels {

const char* instruction_set() {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
  return "x86-64-v4 (AVX-512)";
#elif defined(__AVX2__) && defined(__FMA__)
  return "x86-64-v3 (AVX2)";
#elif defined(__x86_64__)
  return "x86-64-v2 (SSE4)";
#elif defined(__aarch64__)
  return "aarch64 (NEON)";
#else
  return "generic";
#endif
}

}  // namespace nmt::kernels
