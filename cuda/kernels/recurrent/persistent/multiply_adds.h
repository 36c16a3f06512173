#pragma once

// Products of float32 with a slice (slice.h) by multiply-adds. As with tensor cores, a warp has all
// outputs of a tile of rows, over every eighth block of 16 k, and the sums of the warps are added
// in shared memory. A lane has 8 rows and up to 8 columns, so that multiply-adds and not the reads
// of shared memory limit the speed. The rows of a block are staged in shared memory of the warp,
// while the loads of the next blocks from the L2 cache are in flight.

#include "cuda/kernels/recurrent/persistent/slice.h"

namespace nmt::cuda {

/// Stores a piece of the weights of column n.
__device__ __forceinline__ void store_piece(const SliceLayout& l, std::int32_t n,
                                            std::int32_t piece, const Piece<float>& value,
                                            float* weights) {
  *reinterpret_cast<Piece<float>*>(weights + n * l.weight_stride<float>() +
                                   piece * Piece<float>::size) = value;
}

template <int max_columns>
class MultiplyAdds {
 public:
  __device__ __forceinline__ MultiplyAdds(const SliceLayout& l, const SliceInput& in,
                                          std::int64_t first, int rows, unsigned char* space)
      : l_(l),
        in_(in),
        blocks_((l.padded_depth + block_depth - 1) / block_depth),
        columns_(l.padded_columns / 8),
        rows_(rows),
        first_(first),
        space_(space) {}

  __device__ __forceinline__ void multiply(const float* weights) {
    // Of columns lane % 8 + 8 j and rows lane / 8 + 4 i.
    const float* const of_lane = weights + lane() % 8 * l_.weight_stride<float>();
    float* const staged = reinterpret_cast<float*>(space_) + warp() * tile_rows * stride;
    float* const to = staged + lane() / 4 * stride + lane() % 4 * 4;
    const float* const from = staged + lane() / 8 * stride;
    if (!in_.aligned || in_.factors) {
      for (int block = warp(); block < blocks_; block += slice_warps) {
        __syncwarp();
#pragma unroll 1
        for (int i = 0; i < 4; ++i) {
          const int row = lane() / 4 + 8 * i, k = block * block_depth + lane() % 4 * 4;
          stage_piece(in_, row < rows_, first_ + row, k, l_.depth, to + 8 * i * stride);
        }
        __syncwarp();
        add(block, of_lane, from);
      }
      return;
    }
    float4 x[stages][4];
    const float* const rows = in_.values + (first_ + lane() / 4) * in_.stride;
#pragma unroll
    for (int s = 0; s < stages; ++s) load(rows, warp() + s * slice_warps, x[s]);
    for (int first = warp(); first < blocks_; first += stages * slice_warps)
#pragma unroll
      for (int s = 0; s < stages; ++s) {
        const int block = first + s * slice_warps;
        if (block >= blocks_) break;
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; ++i) *reinterpret_cast<float4*>(to + 8 * i * stride) = x[s][i];
        __syncwarp();
        load(rows, block + stages * slice_warps, x[s]);
        add(block, of_lane, from);
      }
  }

  // Writes the sums of all warps row by row. Calls between() when a part of the sums has left the
  // registers.
  template <class Between>
  __device__ __forceinline__ void store(Between between) {
    float2* const parts = reinterpret_cast<float2*>(space_);
    float2 result[rounds];
#pragma unroll
    for (int round = 0; round < rounds; ++round) {
      if (2 * round >= columns_) break;
#pragma unroll
      for (int i = 0; i < sums_at_once; ++i)
        parts[(warp() * sums_at_once + i) * warp_size + lane()] =
            make_float2(sum_[i][2 * round], sum_[i][2 * round + 1]);
      if (round == 0) between();
      __syncthreads();
      result[round] = add_parts(parts);
      __syncthreads();
    }
    float* const out = reinterpret_cast<float*>(space_) +
                       (warp() * 4 + lane() / 8) * l_.output_stride() + lane() % 8;
#pragma unroll
    for (int round = 0; round < rounds; ++round) {
      if (2 * round < columns_) out[2 * round * 8] = result[round].x;
      if (2 * round + 1 < columns_) out[(2 * round + 1) * 8] = result[round].y;
    }
    __syncthreads();
  }

 private:
  static constexpr int block_depth = staged_depth, stride = staging_stride,
                       rounds = max_columns / 16;
  static constexpr int stages = 2;  // blocks of k whose loads are in flight

  // Rows g, g + 8, g + 16 and g + 24 of a block of k; from: row g.
  __device__ __forceinline__ void load(const float* from, int block, float4 (&x)[4]) const {
    const int k = block * block_depth + lane() % 4 * 4;
    if (block >= blocks_) return;
    const bool inside = k < l_.depth;
    from += inside ? in_.column(k) : 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      x[i] = inside && lane() / 4 + 8 * i < rows_
                 ? __ldcg(reinterpret_cast<const float4*>(from + 8 * i * in_.stride))
                 : float4{0, 0, 0, 0};
  }

  __device__ __forceinline__ void add(int block, const float* weights, const float* from) {
    const int weight_stride = 8 * l_.weight_stride<float>(),
              left = l_.padded_depth - block * block_depth,
              depth = left < block_depth ? left : block_depth;
    weights += block * block_depth;
#pragma unroll 2
    for (int k = 0; k < depth; k += 4) {
      float4 x[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        x[i] = *reinterpret_cast<const float4*>(from + 4 * i * stride + k);
#pragma unroll
      for (int j = 0; j < max_columns / 8; ++j) {
        if (j >= columns_) break;
        const float4 w = *reinterpret_cast<const float4*>(weights + j * weight_stride + k);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          sum_[i][j] += x[i].x * w.x;
          sum_[i][j] += x[i].y * w.y;
          sum_[i][j] += x[i].z * w.z;
          sum_[i][j] += x[i].w * w.w;
        }
      }
    }
  }

  const SliceLayout& l_;
  const SliceInput& in_;
  const int blocks_, columns_, rows_;
  const std::int64_t first_;
  unsigned char* const space_;
  float sum_[8][max_columns / 8] = {};
};

}  // namespace nmt::cuda
