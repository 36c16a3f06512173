#pragma once

#include "kernels/backend.h"

#include <cstdint>

namespace nmt::kernels {

constexpr float layer_norm_epsilon = 1e-6f;

/// Layer normalization (Ba et al. 2016, eq. 4) of each of the `planes` parts of a row: x [rows,
/// planes*width], gain and bias [planes*width]; bias may be null, y may be x. For the backward pass
/// it writes the normalized values before gain and bias to `normal` [rows, planes*width] and
/// 1/sigma to `rstd` [rows, planes]; both may be null.
NMT_KERNEL(layer_norm, std::int64_t rows, std::int64_t planes, std::int64_t width, const float* x,
           const float* gain, const float* bias, float* y, float* normal, float* rstd);
/// Writes dx, which may be dy, and adds to dgain and dbias; dbias may be null. Sums over rows have
/// a fixed order.
NMT_KERNEL(layer_norm_backward, std::int64_t rows, std::int64_t planes, std::int64_t width,
           const float* dy, const float* normal, const float* rstd, const float* gain, float* dx,
           float* dgain, float* dbias);
/// Forward and backward for some rows on the calling thread. Parameter gradients are added to the
/// caller's buffers. [CPU only: building blocks of the recurrence drivers]
void layer_norm_rows(std::int64_t rows, std::int64_t planes, std::int64_t width, const float* x,
                     const float* gain, const float* bias, float* y, float* normal, float* rstd);
void layer_norm_backward_rows(std::int64_t rows, std::int64_t planes, std::int64_t width,
                              const float* dy, const float* normal, const float* rstd,
                              const float* gain, float* dx, float* dgain, float* dbias);

}  // namespace nmt::kernels
