#pragma once

#include <cstdint>

namespace nmt::app::bench {

// The loops that measure a processor's bounds. They are a library of their own, nmt_peak, built
// once per instruction set as the kernels are.

/// Runs `rounds` rounds of independent fused multiply-adds in registers on the calling thread, with
/// the widest vectors of the instruction set. Returns the number of floating-point operations, two
/// for each multiply-add: the FMA peak.
std::int64_t run_fma_loop(std::int64_t rounds);

/// Sums n floats on the calling thread with independent vector additions, in 1, 4 or 8 streams that
/// read equal parts of them at the same time. Returns the number of bytes read: the memory
/// bandwidth.
std::int64_t run_read_loop(const float* x, std::int64_t n, int streams, float* sum);

}  // namespace nmt::app::bench
