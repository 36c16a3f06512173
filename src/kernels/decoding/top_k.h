#pragma once

#include "kernels/backend.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace nmt::kernels {

/// Columns that `skip` can name on CUDA.
constexpr std::size_t top_k_skipped = 8;

/// Columns whose maximum is looked at together on the CPU.
constexpr std::int64_t top_k_block = 128;
constexpr std::int64_t top_k_blocks(std::int64_t width) {
  return (width + top_k_block - 1) / top_k_block;
}

/// The k greatest elements of every row of x [rows,width], greatest first, equal ones by ascending
/// column: values [rows,k] and columns [rows,k]. Columns in `skip` and elements of -inf are left
/// out; places without an element hold -inf and column -1. A row with a NaN gets the first one
/// alone, with its column. 1 <= k. `skip` lies on the host.
NMT_KERNEL(top_k, std::int64_t rows, std::int64_t width, const float* x, int k,
           std::span<const std::int32_t> skip, float* values, std::int32_t* columns);
/// The same where the maxima of each row's blocks are known: maxima [rows, top_k_blocks(width)],
/// NaN for a block with a NaN. Reads the blocks alone that matter.
void top_k_of_blocks(const Cpu&, std::int64_t rows, std::int64_t width, const float* x,
                     const float* maxima, int k, std::span<const std::int32_t> skip, float* values,
                     std::int32_t* columns);

}  // namespace nmt::kernels
