#pragma once

// Products of a block with a slice of a matrix that stays in shared memory, for persistent
// recurrences (persistent.h): out[m][n] = sum over k of in[m][k] weight[n][k] for a tile of rows.
// The rows are staged through shared memory in chunks of k, the next one on its way from the L2
// cache while the block computes. float32 is computed by multiply-adds, bfloat16 by tensor cores.

#include "cuda/kernels/assign.h"
#include "cuda/runtime/launch.h"

#include <bit>

#include <cuda_bf16.h>
#include <mma.h>

namespace nmt::cuda {

using kernels::Bfloat16;

constexpr int slice_threads = 256, slice_warps = slice_threads / warp_size;
constexpr int tile_rows = 32;

/// 16 bytes, which one access moves.
template <class Number>
struct alignas(16) Piece {
  static constexpr int size = 16 / sizeof(Number);
  Number value[size];
};

constexpr int chunk_bytes = 512;  ///< of k that are staged of each row
constexpr int pieces_per_thread = tile_rows * chunk_bytes / 16 / slice_threads;
template <class Number>
constexpr int chunk_size = chunk_bytes / static_cast<int>(sizeof(Number));
/// Rows in shared memory are 16 bytes longer, so that the accesses of a warp differ in their banks.
template <class Number>
constexpr int row_padding = Piece<Number>::size;

/// Numbers to whose multiples the columns and the depth are padded with zeros, and the largest
/// number of columns: a thread computes 2 x 4 outputs, a warp 2 x 3 tiles of 16 x 16.
template <class Number>
struct SliceLimits;
template <>
struct SliceLimits<float> {
  static constexpr int step = 4, max_columns = 64;
};
template <>
struct SliceLimits<Bfloat16> {
  static constexpr int step = 16, max_columns = 96;
  static constexpr int column_tiles = 3;  // of a warp
};

/// The sizes of a product and its places in shared memory.
struct SliceLayout {
  std::int32_t columns = 0, depth = 0;                ///< 0: there is no product
  std::int32_t padded_columns = 0, padded_depth = 0;  ///< multiples of SliceLimits::step
  std::int32_t column_groups = 1;                     ///< of tiles, of a warp each; bfloat16 only
  std::int32_t parts = 1;   ///< into which k is divided, each computed by other threads
  std::int32_t copies = 1;  ///< of the output tile, to be summed

  NMT_HOST_DEVICE std::int32_t output_stride() const { return padded_columns + 4; }
  NMT_HOST_DEVICE std::int32_t output_size() const { return tile_rows * output_stride(); }
  template <class Number>
  NMT_HOST_DEVICE std::int32_t weight_stride() const {
    return padded_depth + row_padding<Number>;
  }
  template <class Number>
  NMT_HOST_DEVICE std::int32_t weight_bytes() const {
    return padded_columns * weight_stride<Number>() * static_cast<std::int32_t>(sizeof(Number));
  }
};

constexpr std::int32_t staging_bytes = tile_rows * (chunk_bytes + 16);

/// The layout of a product; more columns than SliceLimits::max_columns are not possible.
template <class Number>
SliceLayout slice_layout(std::int64_t columns, std::int64_t depth) {
  using Limits = SliceLimits<Number>;
  const auto padded = [](std::int64_t n) {
    return static_cast<std::int32_t>(divide_up(n, Limits::step) * Limits::step);
  };
  SliceLayout layout;
  layout.columns = static_cast<std::int32_t>(columns);
  layout.depth = static_cast<std::int32_t>(depth);
  layout.padded_columns = padded(columns);
  layout.padded_depth = padded(depth);
  if (columns == 0) return layout;
  if constexpr (std::is_same_v<Number, float>) {
    layout.parts = std::min(8, slice_threads / (tile_rows / 2 * layout.padded_columns / 4));
  } else {
    layout.column_groups = static_cast<std::int32_t>(
        divide_up(layout.padded_columns / Limits::step, Limits::column_tiles));
    layout.parts = slice_warps / layout.column_groups;
  }
  const auto fitting = static_cast<std::int32_t>(
      staging_bytes / (layout.output_size() * std::int32_t{sizeof(float)}));
  layout.copies = std::clamp(fitting, 1, layout.parts);
  return layout;
}

/// Bytes of the space that staging and output share.
inline std::int32_t space_bytes(const SliceLayout& layout) {
  return std::max(staging_bytes,
                  layout.copies * layout.output_size() * std::int32_t{sizeof(float)});
}

/// The rows that a product reads: k is at first + k / segment * segment_stride + k % segment, or
/// with several groups at the channel that is in place first + k of the rearranged row
/// (rearrange.h); factors are then in the order of that row.
struct SliceInput {
  const float* values = nullptr;
  const Bfloat16* rounded = nullptr;  ///< instead of the values, for products of bfloat16
  const float* factors = nullptr;     ///< [rows,stride], multiplied by the values; or null
  std::int64_t stride = 0;            ///< elements between rows
  std::int32_t first = 0, segment = 0, segment_stride = 0, groups = 1;
  bool aligned = false;  ///< every Piece lies within a segment, at a multiple of its size

  __device__ __forceinline__ std::int32_t column(std::int32_t k) const {
    if (groups > 1) return (first + k) % groups * segment + (first + k) / groups;
    return first + k / segment * segment_stride + k % segment;
  }
  __device__ __forceinline__ std::int32_t factor_column(std::int32_t k) const {
    return groups > 1 ? first + k : column(k);
  }
};

/// Four numbers as other blocks have written them: from the L2 cache.
__device__ __forceinline__ void load_four(const float* from, const float* factors, float* to) {
  const float4 v = __ldcg(reinterpret_cast<const float4*>(from));
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  if (factors)
#pragma unroll
    for (int e = 0; e < 4; ++e) to[e] *= factors[e];
}

/// The piece from k on of a row; 0 past the depth.
template <class Number>
__device__ __forceinline__ Piece<Number> load_piece(const SliceInput& in, std::int64_t row,
                                                    std::int32_t k, std::int32_t depth) {
  constexpr int size = Piece<Number>::size;
  Piece<Number> piece{};
  if (in.aligned) {
    if (k >= depth) return piece;
    const std::int64_t at = row * in.stride + in.column(k);
    if constexpr (std::is_same_v<Number, Bfloat16>) {
      if (in.rounded) {
        const uint4 bits = __ldcg(reinterpret_cast<const uint4*>(in.rounded + at));
        return std::bit_cast<Piece<Number>>(bits);
      }
    }
    float value[size];
#pragma unroll
    for (int e = 0; e < size; e += 4)
      load_four(in.values + at + e, in.factors ? in.factors + at + e : nullptr, value + e);
#pragma unroll
    for (int e = 0; e < size; ++e) assign(piece.value[e], value[e]);
    return piece;
  }
  for (int e = 0; e < size && k + e < depth; ++e) {
    const std::int64_t at = row * in.stride + in.column(k + e);
    if (in.rounded && std::is_same_v<Number, Bfloat16>)
      assign(piece.value[e], as_float(__ldcg(in.rounded + at)));
    else
      assign(piece.value[e],
             __ldcg(in.values + at) *
                 (in.factors ? in.factors[row * in.stride + in.factor_column(k + e)] : 1.0f));
  }
  return piece;
}

/// Multiply-adds. A thread has the outputs of rows r and r + 16 and of four columns.
class MultiplyAdds {
 public:
  __device__ __forceinline__ explicit MultiplyAdds(const SliceLayout& l) {
    const int tiles = tile_rows / 2 * l.padded_columns / 4, thread = static_cast<int>(threadIdx.x);
    part_ = thread / tiles;
    row_ = thread % tiles % (tile_rows / 2);
    column_ = thread % tiles / (tile_rows / 2) * 4;
  }
  __device__ __forceinline__ int part() const { return part_; }

  /// Adds the products of `depth` staged k.
  __device__ __forceinline__ void add(const SliceLayout& l, int, int depth, const float* staged,
                                      const float* weights) {
    constexpr int stride = chunk_size<float> + row_padding<float>;
    const int weight_stride = l.weight_stride<float>();
    if (part_ >= l.parts) return;
    for (int k = 4 * part_; k < depth; k += 4 * l.parts) {
      float4 x[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        x[i] = *reinterpret_cast<const float4*>(staged + (row_ + i * (tile_rows / 2)) * stride + k);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float4 w =
            *reinterpret_cast<const float4*>(weights + (column_ + j) * weight_stride + k);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          sum_[i][j] += x[i].x * w.x;
          sum_[i][j] += x[i].y * w.y;
          sum_[i][j] += x[i].z * w.z;
          sum_[i][j] += x[i].w * w.w;
        }
      }
    }
  }
  __device__ __forceinline__ void store(const SliceLayout& l, int, bool accumulate, float* out) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float& to = out[(row_ + i * (tile_rows / 2)) * l.output_stride() + column_ + j];
        to = accumulate ? to + sum_[i][j] : sum_[i][j];
      }
  }

 private:
  int part_, row_, column_;
  float sum_[2][4] = {};
};

// bfloat16 needs compute capability 8.0; older devices take no such path (plan.cu).
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
class TensorCores {
 public:
  __device__ __forceinline__ explicit TensorCores(const SliceLayout&) {}
  __device__ __forceinline__ int part() const { return 0; }
  __device__ __forceinline__ void add(const SliceLayout&, int, int, const Bfloat16*,
                                      const Bfloat16*) {}
  __device__ __forceinline__ void store(const SliceLayout&, int, bool, float*) {}
};
#else
/// Tensor cores. A warp has the outputs of all rows and of up to three tiles of 16 columns.
class TensorCores {
 public:
  __device__ __forceinline__ explicit TensorCores(const SliceLayout& l) {
    const int warp = static_cast<int>(threadIdx.x) / warp_size;
    part_ = warp / l.column_groups;
    const int tiles = l.padded_columns / side, group = warp % l.column_groups;
    const int per_group = (tiles + l.column_groups - 1) / l.column_groups;
    first_ = group * per_group;
    tiles_ = tiles - first_ < per_group ? tiles - first_ : per_group;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < max_tiles; ++j) nvcuda::wmma::fill_fragment(sum_[i][j], 0.0f);
  }
  __device__ __forceinline__ int part() const {
    return part_;
  }

  __device__ __forceinline__ void add(const SliceLayout& l, int row_tiles, int depth,
                                      const Bfloat16* staged, const Bfloat16* weights) {
    using nvcuda::wmma::load_matrix_sync;
    constexpr int stride = chunk_size<Bfloat16> + row_padding<Bfloat16>;
    const int weight_stride = l.weight_stride<Bfloat16>();
    if (part_ >= l.parts) return;
    for (int k = side * part_; k < depth; k += side * l.parts) {
      nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, side, side, side, __nv_bfloat16,
                             nvcuda::wmma::row_major>
          x[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (i < row_tiles) load_matrix_sync(x[i], of(staged + i * side * stride + k), stride);
#pragma unroll
      for (int j = 0; j < max_tiles; ++j) {
        if (j >= tiles_) break;
        nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, side, side, side, __nv_bfloat16,
                               nvcuda::wmma::col_major>
            w;
        load_matrix_sync(w, of(weights + (first_ + j) * side * weight_stride + k), weight_stride);
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (i < row_tiles) nvcuda::wmma::mma_sync(sum_[i][j], x[i], w, sum_[i][j]);
      }
    }
  }
  __device__ __forceinline__ void store(const SliceLayout& l, int row_tiles, bool accumulate,
                                        float* out) {
    using nvcuda::wmma::mem_row_major;
    const int stride = l.output_stride();
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < max_tiles; ++j) {
        if (i >= row_tiles || j >= tiles_) continue;
        float* const to = out + i * side * stride + (first_ + j) * side;
        if (accumulate) {
          Sums before;
          nvcuda::wmma::load_matrix_sync(before, to, stride, mem_row_major);
#pragma unroll
          for (int e = 0; e < before.num_elements; ++e) sum_[i][j].x[e] += before.x[e];
        }
        nvcuda::wmma::store_matrix_sync(to, sum_[i][j], stride, mem_row_major);
      }
  }

 private:
  static constexpr int side = 16, max_tiles = SliceLimits<Bfloat16>::column_tiles;
  using Sums = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, side, side, side, float>;
  __device__ __forceinline__ static const __nv_bfloat16* of(const Bfloat16* x) {
    return reinterpret_cast<const __nv_bfloat16*>(x);
  }
  int part_, first_, tiles_;
  Sums sum_[2][max_tiles];
};
#endif

template <class Number>
using SliceSums = std::conditional_t<std::is_same_v<Number, float>, MultiplyAdds, TensorCores>;

/// Multiplies rows [first, first + rows) of the input, at most tile_rows, with the slice. Returns
/// with the sums in `space`, where output() reads them; barriers before and after are included.
template <class Number>
__device__ __forceinline__ void slice_product(const SliceLayout& l, const Number* weights,
                                              const SliceInput& in, std::int64_t first, int rows,
                                              unsigned char* space) {
  constexpr int chunk = chunk_size<Number>, stride = chunk + row_padding<Number>,
                row_pieces = chunk / Piece<Number>::size;
  Number* const staged = reinterpret_cast<Number*>(space);
  const int thread = static_cast<int>(threadIdx.x), row_tiles = rows > tile_rows / 2 ? 2 : 1;
  Piece<Number> next[pieces_per_thread];
  const auto load = [&](int begin) {
#pragma unroll
    for (int j = 0; j < pieces_per_thread; ++j) {
      const int piece = thread + j * slice_threads, row = piece / row_pieces,
                k = begin + piece % row_pieces * Piece<Number>::size;
      next[j] = row < rows ? load_piece<Number>(in, first + row, k, l.depth) : Piece<Number>{};
    }
  };
  SliceSums<Number> sums(l);
  load(0);
  for (int begin = 0; begin < l.padded_depth; begin += chunk) {
    __syncthreads();  // the space has been read
#pragma unroll
    for (int j = 0; j < pieces_per_thread; ++j) {
      const int piece = thread + j * slice_threads;
      *reinterpret_cast<Piece<Number>*>(staged + piece / row_pieces * stride +
                                        piece % row_pieces * Piece<Number>::size) = next[j];
    }
    __syncthreads();
    if (begin + chunk < l.padded_depth) load(begin + chunk);
    const int depth = l.padded_depth - begin < chunk ? l.padded_depth - begin : chunk;
    sums.add(l, row_tiles, depth, staged, weights + begin);
  }
  __syncthreads();
  float* const out = reinterpret_cast<float*>(space);
  for (int done = 0; done < l.parts; done += l.copies) {
    const int part = sums.part();
    if (part >= done && part < done + l.copies && part < l.parts)
      sums.store(l, row_tiles, done > 0, out + (part - done) * l.output_size());
    __syncthreads();
  }
}

/// The output of a row and a column of the last slice_product().
__device__ __forceinline__ float output(const SliceLayout& l, const unsigned char* space, int row,
                                        int column) {
  const float* const at = reinterpret_cast<const float*>(space) + row * l.output_stride() + column;
  float sum = at[0];
  for (int copy = 1; copy < l.copies; ++copy) sum += at[copy * l.output_size()];
  return sum;
}

}  // namespace nmt::cuda
