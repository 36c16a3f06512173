#pragma once

#include <cstdint>

namespace nmt::app::bench {

// Loops that measure the peak performance of a processor. They form a separate library, nmt_peak,
// which is built once per instruction set like the kernels.

/// Runs `rounds` rounds of independent fused multiply-adds in registers on the calling thread, with
/// the widest vectors of the instruction set. Returns the number of floating-point operations, two
/// per multiply-add; divided by the time, it is the FMA peak.
std::int64_t run_fma_loop(std::int64_t rounds);

/// Runs the largest tile of the matrix products (kernels/products/tile.h) on the calling thread,
/// `rounds` times on the same operands, which stay in the L1 cache. All elements are 1: *sum is the
/// number of products in an element of the output. Returns the number of operations; divided by the
/// time, it is what products can reach at most.
std::int64_t run_tile_loop(std::int64_t rounds, float* sum);

/// Sums n floats `times` times on the calling thread with independent vector additions, in 1, 4 or
/// 8 streams that read equal parts of them at the same time. Returns the number of bytes read;
/// divided by the time, it is the bandwidth.
std::int64_t run_read_loop(const float* x, std::int64_t n, int streams, std::int64_t times,
                           float* sum);

}  // namespace nmt::app::bench
