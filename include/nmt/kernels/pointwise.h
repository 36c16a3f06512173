#pragma once

#include <cstdint>

#include "nmt/kernels/backend.h"

namespace nmt::kernels {

NMT_KERNEL(fill, float* x, std::int64_t n, float value);
/// y += alpha x
NMT_KERNEL(add_scaled, std::int64_t n, float alpha, const float* x, float* y);
/// z = x + y; z may be either.
NMT_KERNEL(add, std::int64_t n, const float* x, const float* y, float* z);
/// y[r,:] = x[r,:] + bias; y may be x.
NMT_KERNEL(add_bias, std::int64_t rows, std::int64_t width, const float* x, const float* bias, float* y);
/// dbias += column sums of dy [rows,width], in a fixed order.
NMT_KERNEL(sum_rows, std::int64_t rows, std::int64_t width, const float* dy, float* dbias);
/// y = tanh(x); y may be x.
NMT_KERNEL(tanh_forward, std::int64_t n, const float* x, float* y);
/// dx += dy (1 - y*y)
NMT_KERNEL(tanh_backward, std::int64_t n, const float* y, const float* dy, float* dx);
/// Inverted dropout: y = keep ? x / (1-p) : 0; element i is kept when philox(key, i/4, stream)[i%4] >= p 2^32. y may be x.
/// The backward pass is the same call on dy.
NMT_KERNEL(dropout, std::int64_t n, float p, std::uint64_t key, std::uint64_t stream, const float* x, float* y);
/// out[r,:] = table[ids[r],:], width E.
NMT_KERNEL(gather_rows, std::int64_t rows, std::int64_t width, const std::int32_t* ids, const float* table, float* out);
/// out[r] = x[r, columns[r]] of x [rows,width]; the columns are there.
NMT_KERNEL(pick, std::int64_t rows, std::int64_t width, const float* x, const std::int32_t* columns, float* out);
/// dtable[ids[r],:] += dy[r,:], in the order of r for each id whatever the threads.
NMT_KERNEL(scatter_add_rows, std::int64_t rows, std::int64_t width, std::int64_t vocabulary, const std::int32_t* ids, const float* dy,
           float* dtable);
/// Copies a [rows,width] block between matrices of other widths: concatenation and slices along the last axis.
NMT_KERNEL(copy_columns, std::int64_t rows, std::int64_t width, const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride,
           bool accumulate);

}  // namespace nmt::kernels
