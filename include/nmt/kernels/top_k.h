#pragma once

#include "nmt/kernels/backend.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace nmt::kernels {

/// Columns that `skip` can name on CUDA.
constexpr std::size_t top_k_skipped = 8;

/// The k greatest elements of every row of x [rows,width], greatest first, equal ones by ascending column:
/// values [rows,k] and columns [rows,k]. Columns in `skip` and elements of -inf are left out; places without an element
/// hold -inf and column -1. A row with a NaN gets the first one alone, with its column. 1 <= k. `skip` lies on the host.
NMT_KERNEL(top_k, std::int64_t rows, std::int64_t width, const float* x, int k, std::span<const std::int32_t> skip,
           float* values, std::int32_t* columns);

}  // namespace nmt::kernels
