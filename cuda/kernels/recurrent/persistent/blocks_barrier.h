#pragma once

#include "cuda/runtime/launch.h"

namespace nmt::cuda {

/// A barrier of `blocks` blocks of a cooperative launch, one of which leads. Every thread of these
/// blocks calls the barrier; writes to device memory before the barrier are visible to all of them
/// after it. For one-dimensional blocks.
///
/// `counter` belongs to these blocks alone; its lower 31 bits are 0 before and after. Together the
/// blocks add 2^31, so the highest bit changes when the last block arrives.
__device__ __forceinline__ void blocks_barrier(unsigned* counter, unsigned blocks, bool leads) {
#if defined(__CUDACC__)
  constexpr unsigned arrived = 0x80000000u;
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned add = leads ? arrived - (blocks - 1) : 1u;
    unsigned before, now;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(counter), "r"(add)
                 : "memory");
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
    } while (((before ^ now) & arrived) == 0);
  }
  __syncthreads();
#else
  ::nmt::emulator::blocks_barrier(counter, blocks, leads, std::source_location::current());
#endif
}

}  // namespace nmt::cuda
