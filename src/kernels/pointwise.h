#pragma once

#include "core/rng.h"
#include "kernels/backend.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nmt::kernels {

/// Where the rows of a tensor [T,B,width] stand in one that it is a part of: row (t, b) is row t
/// step + first + b stride there. The same rows twice, with a step of 0, share what is drawn for
/// them.
struct RowPlaces {
  std::int64_t batch = 1;  ///< B
  std::int64_t step = 1, first = 0, stride = 1;
  /// Where the tensor's own rows stand in [T,B], on its device; null: in their order.
  const std::int32_t* rows = nullptr;

  NMT_HOST_DEVICE std::int64_t operator()(std::int64_t row) const {
    const std::int64_t at = rows ? rows[row] : row;
    return at / batch * step + first + at % batch * stride;
  }
  /// Whether row r stands at r.
  bool in_order() const { return !rows && step == batch && first == 0 && stride == 1; }
};

NMT_KERNEL(fill, float* x, std::int64_t n, float value);
/// y += alpha x
NMT_KERNEL(add_scaled, std::int64_t n, float alpha, const float* x, float* y);
/// z = x + y; z may be either.
NMT_KERNEL(add, std::int64_t n, const float* x, const float* y, float* z);
/// y[r,:] = x[r,:] + bias; y may be x.
NMT_KERNEL(add_bias, std::int64_t rows, std::int64_t width, const float* x, const float* bias,
           float* y);
/// dbias += column sums of dy [rows,width], in a fixed order.
NMT_KERNEL(sum_rows, std::int64_t rows, std::int64_t width, const float* dy, float* dbias);
/// y = tanh(x); y may be x.
NMT_KERNEL(tanh_forward, std::int64_t n, const float* x, float* y);
/// dx += dy (1 - y*y)
NMT_KERNEL(tanh_backward, std::int64_t n, const float* y, const float* dy, float* dx);
/// Inverted dropout of x [rows,width]: y = keep ? x / (1-p) : 0; element i of row r is kept when
/// philox(key, e/4, stream)[e%4] >= p 2^32 with e = places(r) width + i. y may be x. The backward
/// pass is the same call on dy.
NMT_KERNEL(dropout, std::int64_t rows, std::int64_t width, const RowPlaces& places, float p,
           std::uint64_t key, std::uint64_t stream, const float* x, float* y);
/// out[r,:] = table[ids[r],:], width E.
NMT_KERNEL(gather_rows, std::int64_t rows, std::int64_t width, const std::int32_t* ids,
           const float* table, float* out);
/// out[r] = x[r, columns[r]] of x [rows,width]; the columns are there.
NMT_KERNEL(pick, std::int64_t rows, std::int64_t width, const float* x, const std::int32_t* columns,
           float* out);
/// The places of `ids` [n] sorted by id, equal ids in their order, then [n+1] where each id's run
/// begins among them, and n for the rest.
std::vector<std::int32_t> symbol_runs(std::span<const std::int32_t> ids);
/// dtable[ids[r],:] += dy[r,:], in the order of r for each id whatever the threads. `runs`:
/// symbol_runs() of the ids; only CUDA reads them.
NMT_KERNEL(scatter_add_rows, std::int64_t rows, std::int64_t width, std::int64_t vocabulary,
           const std::int32_t* ids, const std::int32_t* runs, const float* dy, float* dtable);
/// to[places[r],:] += from[r,:]; every place at most once.
NMT_KERNEL(add_to_rows, std::int64_t rows, std::int64_t width, const std::int32_t* places,
           const float* from, float* to);
/// Copies a [rows,width] block between matrices of other widths: concatenation and slices along the
/// last axis.
NMT_KERNEL(copy_columns, std::int64_t rows, std::int64_t width, const float* from,
           std::int64_t from_stride, float* to, std::int64_t to_stride, bool accumulate);

}  // namespace nmt::kernels
