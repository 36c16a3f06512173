#pragma once

#include <cstdint>

namespace nmt::kernels {

/// Runs `rounds` rounds of independent multiply-adds in registers on the calling thread, with the
/// widest vectors this build of the kernels has, and returns the floating-point operations done
/// (two a multiply-add). What benchmarks call the peak.
std::int64_t multiply_add_loop(std::int64_t rounds);

/// Bytes read: sums n floats with independent vector additions on the calling thread, in 1, 4 or 8
/// streams that walk through equal parts of them side by side; the sum goes to *sum.
std::int64_t read_loop(const float* x, std::int64_t n, int streams, float* sum);

}  // namespace nmt::kernels
