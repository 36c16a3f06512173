#pragma once

#include "core/error.h"
#include "kernels/handles.h"
#include "kernels/pointwise.h"
#include "kernels/products/bfloat16.h"

#include <cstdint>

namespace nmt::kernels {

constexpr float layer_norm_epsilon = 1e-6f;

/// Layer normalization (Ba et al. 2016, eq. 4) of each of the `planes` parts of a row: x [rows,
/// planes*width], gain and bias [planes*width]; bias may be null, y may be x. For the backward pass
/// it writes the mean and 1/sigma of each part to `statistics` [rows, planes, 2], or null.
NMT_KERNEL(layer_norm, std::int64_t rows, std::int64_t planes, std::int64_t width, const float* x,
           const float* gain, const float* bias, float* y, float* statistics);
/// From the same x and the statistics: writes dx, which may be dy, and adds to dgain and dbias;
/// dbias may be null. Sums over rows have a fixed order.
NMT_KERNEL(layer_norm_backward, std::int64_t rows, std::int64_t planes, std::int64_t width,
           const float* dy, const float* x, const float* statistics, const float* gain, float* dx,
           float* dgain, float* dbias);
/// The same with dx rounded, in rows at rounded_stride(planes*width) (products/product_input.h).
/// [CUDA only: no product of the CPU reads rounded inputs]
void layer_norm_backward_rounded(const Cuda&, std::int64_t rows, std::int64_t planes,
                                 std::int64_t width, const float* dy, const float* x,
                                 const float* statistics, const float* gain, Bfloat16* dx,
                                 float* dgain, float* dbias);
inline void layer_norm_backward_rounded(const Cpu&, std::int64_t, std::int64_t, std::int64_t,
                                        const float*, const float*, const float*, const float*,
                                        Bfloat16*, float*, float*) {
  NMT_FAIL("products of the CPU read no rounded inputs");
}
/// Both with x, y and the gradients in bfloat16, in rows without gaps; dx may be dy. [CUDA only]
void layer_norm_rounded(const Cuda&, std::int64_t rows, std::int64_t planes, std::int64_t width,
                        const Bfloat16* x, const float* gain, const float* bias, Bfloat16* y,
                        float* statistics);
inline void layer_norm_rounded(const Cpu&, std::int64_t, std::int64_t, std::int64_t,
                               const Bfloat16*, const float*, const float*, Bfloat16*, float*) {
  NMT_FAIL("products of the CPU write no rounded results");
}
void layer_norm_backward_rounded(const Cuda&, std::int64_t rows, std::int64_t planes,
                                 std::int64_t width, const Bfloat16* dy, const Bfloat16* x,
                                 const float* statistics, const float* gain, Bfloat16* dx,
                                 float* dgain, float* dbias);
inline void layer_norm_backward_rounded(const Cpu&, std::int64_t, std::int64_t, std::int64_t,
                                        const Bfloat16*, const Bfloat16*, const float*,
                                        const float*, Bfloat16*, float*, float*) {
  NMT_FAIL("products of the CPU write no rounded results");
}

/// The end of a layer with a residual connection: sum = x + dropout(branch) [rows,width], and y,
/// layer_norm() of it.
struct ResidualNorm {
  std::int64_t rows = 0, width = 0;
  const float* x = nullptr;
  const float* branch = nullptr;
  /// The branch in bfloat16 instead, in rows without gaps; or null. Not read backward. [CUDA only]
  const Bfloat16* branch_rounded = nullptr;
  const float* gain = nullptr;
  const float* bias = nullptr;
  float* sum = nullptr;         ///< may be branch
  float* y = nullptr;           ///< may be sum
  float* statistics = nullptr;  ///< [rows, 2]; or null
  Bfloat16* rounded = nullptr;  ///< y rounded, for products; or null. [CUDA only]
};
struct ResidualNormGradient {
  float* dy = nullptr;  ///< not kept
  float* dx = nullptr;  ///< written, or added to where `accumulate`; may be dy; null: none
  bool accumulate = false;
  float* dbranch = nullptr;  ///< the gradient of the branch before dropout; or null
  /// The same rounded, in rows at rounded_stride(width); or null. [CUDA only]
  Bfloat16* dbranch_rounded = nullptr;
  float* dgain = nullptr;  ///< added to
  float* dbias = nullptr;  ///< added to
};
NMT_KERNEL(residual_norm, const ResidualNorm& a, const Dropout& dropout);
/// From the sums and the statistics of the same call.
NMT_KERNEL(residual_norm_backward, const ResidualNorm& a, const Dropout& dropout,
           const ResidualNormGradient& g);
/// Forward and backward for some rows on the calling thread, where y may overwrite x: the values
/// before gain and bias are written to `normal` [rows, planes*width], and 1/sigma to `rstd` [rows,
/// planes]; both may be null. Parameter gradients are added to the caller's buffers. [CPU only:
/// building blocks of the recurrence drivers]
void layer_norm_rows(std::int64_t rows, std::int64_t planes, std::int64_t width, const float* x,
                     const float* gain, const float* bias, float* y, float* normal, float* rstd);
void layer_norm_backward_rows(std::int64_t rows, std::int64_t planes, std::int64_t width,
                              const float* dy, const float* normal, const float* rstd,
                              const float* gain, float* dx, float* dgain, float* dbias);

}  // namespace nmt::kernels
