#pragma once

#include "kernels/backend.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace nmt::kernels {

/// Maximum size of `skip` on CUDA.
constexpr std::size_t max_top_k_skip = 8;

/// Columns per block; the CPU skips blocks by their maximum.
constexpr std::int64_t top_k_block = 128;
constexpr std::int64_t top_k_blocks(std::int64_t width) {
  return (width + top_k_block - 1) / top_k_block;
}

/// The k largest elements of every row of x [rows,width] in descending order, ties by ascending
/// column: values [rows,k] and columns [rows,k]. Columns in `skip` and elements of -inf are
/// excluded; unfilled entries are -inf with column -1. A row with NaN returns only its first NaN
/// and the column. k >= 1. `skip` is host memory.
NMT_KERNEL(top_k, std::int64_t rows, std::int64_t width, const float* x, int k,
           std::span<const std::int32_t> skip, float* values, std::int32_t* columns);
/// top_k() with known block maxima: maxima [rows, top_k_blocks(width)], NaN for a block with a NaN.
/// Reads only blocks that can contain a result.
void top_k_of_blocks(const Cpu&, std::int64_t rows, std::int64_t width, const float* x,
                     const float* maxima, int k, std::span<const std::int32_t> skip, float* values,
                     std::int32_t* columns);

}  // namespace nmt::kernels
