#pragma once

#include "core/error.h"
#include "kernels/handles.h"

#include <algorithm>
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

/// The parts into which a device splits a row of x [rows,width], so that few rows use all of it.
/// The number of parts, at most 32, does not depend on the number of rows, since the normalizers'
/// bits depend on the parts.
constexpr std::int64_t part_columns(std::int64_t width) {
  constexpr std::int64_t most = 32, least = 1024;
  return std::max(least, ((width + most - 1) / most + 3) / 4 * 4);
}
constexpr std::int64_t row_parts(std::int64_t width) {
  return (width + part_columns(width) - 1) / part_columns(width);
}
/// What best_of_parts() has found.
struct PartLists {
  std::int64_t parts = 0, k = 0;
  const std::uint64_t* keys = nullptr;  ///< [rows,parts,k], descending; 0: no more
  const float* sums = nullptr;  ///< [rows,parts,2]: the maximum, and the sum of e^(x - maximum)
};
/// The first half of top_k() and log_sum_exp() in one pass: the k best of each part of a row, and
/// its sum, for join_parts() or beam_step(). keys and sums as in PartLists. k = 0: sums alone.
/// [CUDA only]
void best_of_parts(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* x, int k,
                   std::span<const std::int32_t> skip, std::uint64_t* keys, float* sums);
/// The second half: values and columns [rows,k] as top_k(), and log_normalizers [rows] as
/// log_sum_exp(). [CUDA only]
void join_parts(const Cuda& cuda, std::int64_t rows, const PartLists& lists, float* values,
                std::int32_t* columns, float* log_normalizers);
inline void best_of_parts(const Cpu&, std::int64_t, std::int64_t, const float*, int,
                          std::span<const std::int32_t>, std::uint64_t*, float*) {
  NMT_FAIL("the CPU does not split the search for the best");
}

}  // namespace nmt::kernels
