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

/// The columns and the depth are padded with zeros to multiples of these numbers.
template <class Number>
struct SliceSteps;
template <>
struct SliceSteps<float> {
  static constexpr int columns = 8, depth = 4;
};
template <>
struct SliceSteps<Bfloat16> {
  static constexpr int columns = 16, depth = 32;
};
/// The largest number of columns of a product: registers limit it.
template <class Number>
constexpr int max_slice_columns(bool has_late, bool backward) {
  if (std::is_same_v<Number, float>) return 64;
  return backward ? 48 : has_late ? 64 : 96;
}

/// float32: a warp stages a tile of rows of a block of k, each row 16 bytes longer so that the
/// accesses of a warp differ in their banks.
constexpr int staged_depth = 16, staging_stride = staged_depth + 4;
/// Sums of 8 or 16 bytes that a warp stores at a time for each lane.
constexpr int sums_at_once = 8;
/// Bytes of the space that inputs, sums and outputs share.
template <class Number>
constexpr std::int32_t space_bytes = slice_threads* sums_at_once * 16;
template <>
inline constexpr std::int32_t space_bytes<float> = slice_warps* tile_rows* staging_stride * 4;
static_assert(space_bytes<float> >= slice_threads * sums_at_once * 8 &&
              space_bytes<float> >= tile_rows * (max_slice_columns<float>(false, false) + 4) * 4 &&
              space_bytes<Bfloat16> >=
                  tile_rows * (max_slice_columns<Bfloat16>(false, false) + 4) * 4);

/// The sizes of a product and its layout in shared memory.
struct SliceLayout {
  std::int32_t columns = 0, depth = 0;  ///< 0: there is no product
  std::int32_t padded_columns = 0, padded_depth = 0;

  NMT_HOST_DEVICE std::int32_t output_stride() const { return padded_columns + 4; }
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

/// The layout of a product; more columns than max_slice_columns() are not possible.
template <class Number>
SliceLayout slice_layout(std::int64_t columns, std::int64_t depth) {
  using Steps = SliceSteps<Number>;
  const auto padded = [](std::int64_t n, int step) {
    return static_cast<std::int32_t>(divide_up(n, step) * step);
  };
  SliceLayout layout;
  layout.columns = static_cast<std::int32_t>(columns);
  layout.depth = static_cast<std::int32_t>(depth);
  layout.padded_columns = padded(columns, Steps::columns);
  layout.padded_depth = padded(depth, Steps::depth);
  return layout;
}

/// The rows that a product reads: k is column first + k / segment * segment_stride + k % segment,
/// or with several groups the channel at column first + k of the rearranged row (rearrange.h);
/// factors are then in the order of that row.
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

/// Copies the piece from k on of a row to shared memory; 0 past the depth and where there is no
/// row. An unaligned piece is copied in a loop instead of through registers, since that code is
/// long.
template <class Number>
__device__ __forceinline__ void stage_piece(const SliceInput& in, bool has_row, std::int64_t row,
                                            std::int32_t k, std::int32_t depth, Number* to) {
  constexpr int size = Piece<Number>::size;
  if (in.aligned) {
    Piece<Number> piece{};
    if (has_row && k < depth) {
      const std::int64_t offset = row * in.stride + in.column(k);
      float value[size];
#pragma unroll
      for (int e = 0; e < size; e += 4)
        load_four(in.values + offset + e, in.factors ? in.factors + offset + e : nullptr,
                  value + e);
#pragma unroll
      for (int e = 0; e < size; ++e) assign(piece.value[e], value[e]);
    }
    *reinterpret_cast<Piece<Number>*>(to) = piece;
    return;
  }
#pragma unroll 1
  for (int e = 0; e < size; ++e) {
    float value = 0;
    if (has_row && k + e < depth) {
      const std::int64_t offset = row * in.stride + in.column(k + e);
      if (in.rounded && std::is_same_v<Number, Bfloat16>)
        value = as_float(__ldcg(in.rounded + offset));
      else
        value = __ldcg(in.values + offset) *
                (in.factors ? in.factors[row * in.stride + in.factor_column(k + e)] : 1.0f);
    }
    assign(to[e], value);
  }
}

__device__ __forceinline__ int warp() {
  return static_cast<int>(threadIdx.x) / warp_size;
}
__device__ __forceinline__ int lane() {
  return static_cast<int>(threadIdx.x) % warp_size;
}

/// Sums over the warps. Each warp has stored `sums_at_once` values per lane; warp w sums the values
/// with index w.
template <class Vector>
__device__ __forceinline__ Vector add_parts(const Vector* parts) {
  Vector sum = parts[warp() * warp_size + lane()];
#pragma unroll
  for (int part = 1; part < slice_warps; ++part) {
    const Vector more = parts[(part * sums_at_once + warp()) * warp_size + lane()];
    sum.x += more.x, sum.y += more.y;
    if constexpr (sizeof(Vector) == 16) sum.z += more.z, sum.w += more.w;
  }
  return sum;
}

/// The output of a row and a column of the last slice_product().
__device__ __forceinline__ float output(const SliceLayout& l, const unsigned char* space, int row,
                                        int column) {
  return reinterpret_cast<const float*>(space)[row * l.output_stride() + column];
}

}  // namespace nmt::cuda
