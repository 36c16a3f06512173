#pragma once

// What a device does in one launch instead of several. A decoding step has few rows, so that each
// launch costs more than what it moves; in training, the kernels save a pass over the rows.

#include "core/error.h"
#include "kernels/handles.h"
#include "kernels/pointwise.h"
#include "kernels/products/bfloat16.h"

#include <cstdint>
#include <span>

namespace nmt::kernels {

/// A matrix [..,width] that is read, and one that is written.
struct RowsOfMatrix {
  std::int64_t width = 0;
  const float* from = nullptr;
  float* to = nullptr;
};

/// gather_rows() for each of some matrices: to[r,:] = from[ids[r],:] for `rows` rows.
NMT_KERNEL(gather_rows_of_each, std::int64_t rows, const std::int32_t* ids,
           std::span<const RowsOfMatrix> matrices);
/// y [rows, sum of the widths] = the rows of the matrices side by side; `to` is not read.
/// `rounded`: y rounded for products, or null. [rounded: CUDA only]
NMT_KERNEL(join_columns, std::int64_t rows, std::span<const RowsOfMatrix> matrices, float* y,
           Bfloat16* rounded);
/// tanh_forward() with y rounded for products. [CUDA only]
inline void tanh_rounded(const Cpu&, std::int64_t, const float*, float*, Bfloat16*) {
  NMT_FAIL("products of the CPU read no rounded inputs");
}
void tanh_rounded(const Cuda& cuda, std::int64_t n, const float* x, float* y, Bfloat16* rounded);
/// gather_rows() (kernels/pointwise.h) that also writes the rows rounded, without gaps; the width
/// is a multiple of 4. [CUDA only]
inline void gather_rows_rounded(const Cpu&, std::int64_t, std::int64_t, const std::int32_t*,
                                const float*, float*, Bfloat16*) {
  NMT_FAIL("products of the CPU read no rounded inputs");
}
void gather_rows_rounded(const Cuda& cuda, std::int64_t rows, std::int64_t width,
                         const std::int32_t* ids, const float* table, float* y, Bfloat16* rounded);
/// dropout() (kernels/pointwise.h) that also writes y rounded, in rows without gaps; the width is a
/// multiple of 4. [CUDA only]
inline void dropout_rounded(const Cpu&, std::int64_t, std::int64_t, const Dropout&, const float*,
                            float*, Bfloat16*) {
  NMT_FAIL("products of the CPU read no rounded inputs");
}
void dropout_rounded(const Cuda& cuda, std::int64_t rows, std::int64_t width,
                     const Dropout& dropout, const float* x, float* y, Bfloat16* rounded);

}  // namespace nmt::kernels
