#pragma once

// The slice of a matrix that a block of a persistent recurrence (persistent.h) keeps in shared
// memory, and the rows that it is multiplied with: out[m][n] = sum over k of in[m][k] weight[n][k]
// for a tile of rows. multiply_adds.h computes products of float32, tensor_cores.h of bfloat16.

#include "cuda/kernels/assign.h"
#include "cuda/runtime/launch.h"

#include <bit>

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

/// Numbers to whose multiples the columns and the depth are padded with zeros, and the largest
/// number of columns forward and backward; registers limit it.
template <class Number>
struct SliceLimits;
template <>
struct SliceLimits<float> {
  static constexpr int column_step = 4, depth_step = 4, max_columns = 64, max_backward = 64;
};
template <>
struct SliceLimits<Bfloat16> {
  static constexpr int column_step = 16, depth_step = 32, max_columns = 96, max_backward = 48;
};

constexpr int chunk_bytes = 512;  ///< float32: of k that are staged of each row
constexpr std::int32_t staging_bytes = tile_rows * (chunk_bytes + 16);
/// bfloat16: a warp stores 8 tiles of 16 columns and 8 rows at a time.
constexpr int tiles_at_once = 8;
constexpr std::int32_t sums_bytes = slice_warps * tiles_at_once * 16 * 8 * 4;

/// The sizes of a product and its places in shared memory.
struct SliceLayout {
  std::int32_t columns = 0, depth = 0;  ///< 0: there is no product
  std::int32_t padded_columns = 0, padded_depth = 0;
  std::int32_t parts = 1;   ///< into which k is divided, each computed by other threads
  std::int32_t copies = 1;  ///< of the output tile, to be summed

  NMT_HOST_DEVICE std::int32_t output_stride() const { return padded_columns + 4; }
  NMT_HOST_DEVICE std::int32_t output_size() const { return tile_rows * output_stride(); }
  /// float32: rows are 16 bytes longer, so that the accesses of a warp differ in their banks.
  template <class Number>
  NMT_HOST_DEVICE std::int32_t weight_stride() const {
    return padded_depth + (std::is_same_v<Number, float> ? Piece<Number>::size : 0);
  }
  template <class Number>
  NMT_HOST_DEVICE std::int32_t weight_bytes() const {
    return padded_columns * weight_stride<Number>() * static_cast<std::int32_t>(sizeof(Number));
  }
};

/// The layout of a product; more columns than SliceLimits allow are not possible.
template <class Number>
SliceLayout slice_layout(std::int64_t columns, std::int64_t depth) {
  using Limits = SliceLimits<Number>;
  const auto padded = [](std::int64_t n, int step) {
    return static_cast<std::int32_t>(divide_up(n, step) * step);
  };
  SliceLayout layout;
  layout.columns = static_cast<std::int32_t>(columns);
  layout.depth = static_cast<std::int32_t>(depth);
  layout.padded_columns = padded(columns, Limits::column_step);
  layout.padded_depth = padded(depth, Limits::depth_step);
  if (columns == 0 || std::is_same_v<Number, Bfloat16>) return layout;
  layout.parts = std::min(8, slice_threads / (tile_rows / 2 * layout.padded_columns / 4));
  const auto fitting = static_cast<std::int32_t>(
      staging_bytes / (layout.output_size() * std::int32_t{sizeof(float)}));
  layout.copies = std::clamp(fitting, 1, layout.parts);
  return layout;
}

/// Bytes of the space that inputs and sums share.
template <class Number>
std::int32_t space_bytes(const SliceLayout& layout) {
  return std::max(std::is_same_v<Number, float> ? staging_bytes : sums_bytes,
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
    if (segment == segment_stride) return first + k;
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

/// The piece from k on of a row of float32; 0 past the depth.
template <class Number>
__device__ __forceinline__ Piece<Number> load_piece(const SliceInput& in, std::int64_t row,
                                                    std::int32_t k, std::int32_t depth) {
  constexpr int size = Piece<Number>::size;
  Piece<Number> piece{};
  if (in.aligned) {
    if (k >= depth) return piece;
    const std::int64_t at = row * in.stride + in.column(k);
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
    const float value =
        in.rounded && std::is_same_v<Number, Bfloat16>
            ? as_float(__ldcg(in.rounded + at))
            : __ldcg(in.values + at) *
                  (in.factors ? in.factors[row * in.stride + in.factor_column(k + e)] : 1.0f);
    assign(piece.value[e], value);
  }
  return piece;
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
