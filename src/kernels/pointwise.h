#pragma once

#include "core/host_device.h"
#include "core/rng.h"
#include "kernels/handles.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nmt::kernels {

/// Maps the rows of a tensor [T,B,width] to rows of a larger tensor of which it is a part: row (t,
/// b) maps to t step + first + b stride. Dropout draws its mask at the mapped rows; with step 0 all
/// steps share a mask.
struct RowMap {
  std::int64_t batch = 1;  ///< B
  std::int64_t step = 1, first = 0, stride = 1;
  /// Rows of [T,B] that the tensor consists of, in device memory; null: all, in order.
  const std::int32_t* rows = nullptr;

  NMT_HOST_DEVICE std::int64_t operator()(std::int64_t row) const {
    const std::int64_t at = rows ? rows[row] : row;
    return at / batch * step + first + at % batch * stride;
  }
  /// Whether this is the identity.
  bool in_order() const { return !rows && step == batch && first == 0 && stride == 1; }
};

/// What dropout() draws, as part of another kernel.
struct Dropout {
  float p = 0;  ///< 0: none
  std::uint64_t key = 0, stream = 0;
  RowMap map = {};
};

NMT_KERNEL(fill, float* x, std::int64_t n, float value);
/// y += alpha x
NMT_KERNEL(add_scaled, std::int64_t n, float alpha, const float* x, float* y);
/// y = alpha x; y may be x.
NMT_KERNEL(scale, std::int64_t n, float alpha, const float* x, float* y);
/// z = x + y; z may be either.
NMT_KERNEL(add, std::int64_t n, const float* x, const float* y, float* z);
/// y[r,:] = x[r,:] + bias; y may be x.
NMT_KERNEL(add_bias, std::int64_t rows, std::int64_t width, const float* x, const float* bias,
           float* y);
/// dbias += column sums of dy [rows,width], in a fixed order.
NMT_KERNEL(sum_rows, std::int64_t rows, std::int64_t width, const float* dy, float* dbias);
/// y = tanh(x); y may be x.
NMT_KERNEL(tanh_forward, std::int64_t n, const float* x, float* y);
/// dx = dy (1 - y*y), added to dx where `adds`
NMT_KERNEL(tanh_backward, std::int64_t n, const float* y, const float* dy, float* dx,
           bool adds = true);
/// Inverted dropout of x [rows,width]: y = keep ? x / (1-p) : 0. Element i of row r is kept when
/// philox(key, e/4, stream)[e%4] >= p 2^32 with e = map(r) width + i. y may be x. The backward
/// pass is the same call on dy.
NMT_KERNEL(dropout, std::int64_t rows, std::int64_t width, const RowMap& map, float p,
           std::uint64_t key, std::uint64_t stream, const float* x, float* y);
/// out[r,:] = table[ids[r],:], width E.
NMT_KERNEL(gather_rows, std::int64_t rows, std::int64_t width, const std::int32_t* ids,
           const float* table, float* out);
/// out[r] = x[r, columns[r]], x [rows,width]; columns must be in range.
NMT_KERNEL(pick, std::int64_t rows, std::int64_t width, const float* x, const std::int32_t* columns,
           float* out);
/// Index of `ids` [n] for scatter_add_rows(): first the [n] positions stably sorted by id, then
/// [n+1] offsets where each id's run begins, padded with n.
std::vector<std::int32_t> id_runs(std::span<const std::int32_t> ids);
/// dtable[ids[r],:] += dy[r,:]. Rows with the same id are added in the order of r, whatever the
/// number of threads. `runs`: id_runs(ids), read only by CUDA.
NMT_KERNEL(scatter_add_rows, std::int64_t rows, std::int64_t width, std::int64_t vocabulary,
           const std::int32_t* ids, const std::int32_t* runs, const float* dy, float* dtable);
/// to[targets[r],:] += from[r,:]; targets must be distinct.
NMT_KERNEL(add_to_rows, std::int64_t rows, std::int64_t width, const std::int32_t* targets,
           const float* from, float* to);
/// Copies a [rows,width] block between matrices with different row strides: concatenation and
/// slices along the last axis.
NMT_KERNEL(copy_columns, std::int64_t rows, std::int64_t width, const float* from,
           std::int64_t from_stride, float* to, std::int64_t to_stride, bool accumulate);

}  // namespace nmt::kernels
