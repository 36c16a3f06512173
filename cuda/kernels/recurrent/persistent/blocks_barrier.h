#pragma once

#include "cuda/runtime/launch.h"

namespace nmt::cuda {

/// A barrier of `blocks` blocks of a cooperative launch, one of which leads. Every thread of these
/// blocks calls it: what they have written to device memory before, all of them read afterwards.
/// Blocks of one row of threads.
///
/// `counter`: of these blocks alone; its lower 31 bits are 0 before and after. Together the blocks
/// add 2^31, so the highest bit changes when the last one arrives.
__device__ __forceinline__ void blocks_barrier(unsigned* counter, unsigned blocks, bool leads) {
#if defined(__CUDACC__)
  constexpr unsigned arrived = 0x80000000u;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const unsigned before = atomicAdd(counter, leads ? arrived - (blocks - 1) : 1u);
    const volatile unsigned* const now = counter;
    while (((before ^ *now) & arrived) == 0) {
    }
    __threadfence();
  }
  __syncthreads();
#else
  ::nmt::emulator::blocks_barrier(counter, blocks, leads, std::source_location::current());
#endif
}

}  // namespace nmt::cuda
