#pragma once

// Products of bfloat16 with a slice (slice.h). A warp has all outputs of a tile of rows, over every
// eighth block of 32 k; the sums of the warps are added in shared memory. The rows are loaded from
// the L2 cache to registers, for all k of a usual product at once, so the cache latency is paid
// once. In a block of 32 k a lane has 8 consecutive ones of a row, which one access of 16 bytes
// loads; a tensor core does not see which k its operands belong to. Its first operand is the
// weights, the second the rows, whose registers are then in the order in which they are loaded.

#include "cuda/kernels/recurrent/persistent/slice.h"
#include "cuda/kernels/recurrent/unit_step.h"

#include <mma.h>

namespace nmt::cuda {

/// sum += a b for a tile of 16 x 8: lane 4 g + t has the sums of rows g and g + 8 and columns 2 t
/// and 2 t + 1, pairs of k of rows g, g + 8, g, g + 8 in `a` and of column g in (b0, b1). The first
/// two of `a` and b0 have the same k, the others too.
__device__ __forceinline__ void multiply_tile(float (&sum)[4], const uint4& a, unsigned b0,
                                              unsigned b1) {
#if !defined(__CUDACC__)
  nmt::emulator::multiply_tile(sum, {a.x, a.y, a.z, a.w}, {b0, b1});
#elif __CUDA_ARCH__ >= 800  // older devices never use bfloat16 here (plan.cu)
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#endif
}

/// Stores a piece of the weights of column n, as multiply_tile() reads 16 columns and half of the k
/// of a block: 16 bytes for each lane.
__device__ __forceinline__ void store_piece(const SliceLayout& l, std::int32_t n,
                                            std::int32_t piece, const Piece<Bfloat16>& value,
                                            Bfloat16* weights) {
  const std::int32_t block = piece / 4, tile = block * (l.padded_columns / 16) + n / 16,
                     lane = n % 8 * 4 + piece % 4;
  unsigned* const to =
      reinterpret_cast<unsigned*>(weights) + (2 * tile * warp_size + lane) * 4 + n / 8 % 2;
  const uint4 pairs = std::bit_cast<uint4>(value);
  to[0] = pairs.x;
  to[2] = pairs.y;
  to[4 * warp_size] = pairs.z;
  to[4 * warp_size + 2] = pairs.w;
}

template <int max_columns>
class TensorCores {
 public:
  __device__ __forceinline__ TensorCores(const SliceLayout& l, const SliceInput& in,
                                         std::int64_t first, int rows, unsigned char* space)
      : l_(l),
        in_(in),
        blocks_(l.padded_depth / block_depth),
        tiles_(l.padded_columns / 16),
        rows_(rows),
        first_(first),
        space_(space) {}

  __device__ __forceinline__ void multiply(const Bfloat16* weights) {
    const uint4* const of_lane = reinterpret_cast<const uint4*>(weights) + lane();
    const auto of_block = [&](int block) { return of_lane + block * tiles_ * 2 * warp_size; };
    if (!in_.rounded || !in_.aligned) {
      for (int block = warp(); block < blocks_; block += slice_warps) {
        uint4 x[4];
        round(block, x);
        add(of_block(block), x);
      }
      return;
    }
    uint4 x[stages][4];
    const Bfloat16* const from = in_.rounded + (first_ + lane() / 4) * in_.stride;
#pragma unroll
    for (int s = 0; s < stages; ++s) load(from, warp() + s * slice_warps, x[s]);
    for (int first = warp(); first < blocks_; first += stages * slice_warps)
#pragma unroll
      for (int s = 0; s < stages; ++s) {
        const int block = first + s * slice_warps;
        if (block >= blocks_) break;
        add(of_block(block), x[s]);
        load(from, block + stages * slice_warps, x[s]);
      }
  }

  // Writes the sums of all warps row by row. Calls between() when a part of the sums has left the
  // registers.
  template <class Between>
  __device__ __forceinline__ void store(Between between) {
    constexpr int at_once = sums_at_once / row_tiles, rounds = (max_tiles + at_once - 1) / at_once;
    float4* const parts = reinterpret_cast<float4*>(space_);
    float4 result[rounds];
    const int own = warp() / row_tiles, own_rows = warp() % row_tiles;
#pragma unroll
    for (int round = 0; round < rounds; ++round) {
      if (round * at_once >= tiles_) break;
#pragma unroll
      for (int j = 0; j < at_once; ++j)
#pragma unroll
        for (int i = 0; i < row_tiles; ++i) {
          if (round * at_once + j >= max_tiles || !has(round * at_once + j, i)) continue;
          const float(&sum)[4] = sum_[round * at_once + j][i];
          parts[(warp() * sums_at_once + row_tiles * j + i) * warp_size + lane()] = {
              sum[0], sum[1], sum[2], sum[3]};
        }
      if (round == 0) between();
      __syncthreads();
      if (has(round * at_once + own, own_rows)) result[round] = add_parts(parts);
      __syncthreads();
    }
    const int stride = l_.output_stride();
    float* const out = reinterpret_cast<float*>(space_) + (own_rows * 8 + lane() % 4 * 2) * stride +
                       own * 16 + lane() / 4;
#pragma unroll
    for (int round = 0; round < rounds; ++round)
      if (has(round * at_once + own, own_rows)) {
        float* const to = out + round * at_once * 16;
        to[0] = result[round].x;
        to[stride] = result[round].y;
        to[8] = result[round].z;
        to[stride + 8] = result[round].w;
      }
    __syncthreads();
  }

 private:
  static constexpr int block_depth = SliceSteps<Bfloat16>::depth, max_tiles = max_columns / 16,
                       row_tiles = tile_rows / 8;
  // Blocks of k whose loads are in flight; fewer where the compiler uses more registers.
  static constexpr int stages = is_newer && max_columns > 48 ? 2 : 4;

  // Rows g, g + 8, g + 16 and g + 24 of a block of k; from: row g.
  __device__ __forceinline__ void load(const Bfloat16* from, int block, uint4 (&x)[4]) const {
    const int k = block * block_depth + lane() % 4 * 8;
    if (block >= blocks_) return;
    const bool inside = k < l_.depth;
    from += inside ? in_.column(k) : 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      x[i] = inside && lane() / 4 + 8 * i < rows_
                 ? __ldcg(reinterpret_cast<const uint4*>(from + 8 * i * in_.stride))
                 : uint4{0, 0, 0, 0};
  }
  // The same where the input is not rounded or not aligned: a loop over shared memory of this
  // thread, since unrolled code would be long.
  __device__ __forceinline__ void round(int block, uint4 (&x)[4]) const {
    const int k = block * block_depth + lane() % 4 * 8;
    uint4* const staged = reinterpret_cast<uint4*>(space_) + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      const int row = lane() / 4 + 8 * i;
      stage_piece(in_, row < rows_, first_ + row, k, l_.depth,
                  reinterpret_cast<Bfloat16*>(staged + i * slice_threads));
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = staged[i * slice_threads];
  }

  __device__ __forceinline__ void add(const uint4* weights, const uint4 (&x)[4]) {
    const bool many = rows_ > tile_rows / 2;
#pragma unroll
    for (int j = 0; j < max_tiles; ++j) {
      if (j >= tiles_) break;
      const uint4 w[] = {weights[2 * j * warp_size], weights[(2 * j + 1) * warp_size]};
#pragma unroll
      for (int i = 0; i < row_tiles; ++i)
        if (i < row_tiles / 2 || many) multiply_tile(sum_[j][i], w[0], x[i].x, x[i].y);
#pragma unroll
      for (int i = 0; i < row_tiles; ++i)
        if (i < row_tiles / 2 || many) multiply_tile(sum_[j][i], w[1], x[i].z, x[i].w);
    }
  }

  __device__ __forceinline__ bool has(int column_tile, int row_tile) const {
    return column_tile < tiles_ && (row_tile < row_tiles / 2 || rows_ > tile_rows / 2);
  }
  const SliceLayout& l_;
  const SliceInput& in_;
  const int blocks_, tiles_, rows_;
  const std::int64_t first_;
  unsigned char* const space_;
  float sum_[max_tiles][row_tiles][4] = {};
};

}  // namespace nmt::cuda
