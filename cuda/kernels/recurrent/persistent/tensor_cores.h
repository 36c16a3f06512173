#pragma once

// Products of bfloat16 with a slice (slice.h). A warp has all outputs of a tile of rows, over every
// eighth block of 32 k; the sums of the warps are added in shared memory. The rows go from the L2
// cache to registers, those of all k of a usual product at once: the latency of the cache is paid
// once. In a block of 32 k a lane has 8 consecutive ones of a row or column, which one access of 16
// bytes loads; a tensor core does not see which k its operands belong to.

#include "cuda/kernels/recurrent/persistent/slice.h"

#include <mma.h>

namespace nmt::cuda {

/// sum += a b for a tile of 16 x 8: lane 4 g + t has the sums of rows g and g + 8 and columns 2 t
/// and 2 t + 1, a[0..3] of rows g, g + 8, g, g + 8 and b of column g; a[0], a[1] and b[0] have two
/// of the first eight k, the others of the last eight.
__device__ __forceinline__ void multiply_tile(float (&sum)[4], unsigned a0, unsigned a1,
                                              unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
#if !defined(__CUDACC__)
  nmt::emulator::multiply_tile(sum, {a0, a1, a2, a3}, {b0, b1});
#elif __CUDA_ARCH__ >= 800  // older devices take no such path (plan.cu)
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#endif
}

class TensorCores {
 public:
  __device__ __forceinline__ TensorCores(const SliceLayout& l, const SliceInput& in,
                                         std::int64_t first, int rows, unsigned char* space)
      : l_(l),
        in_(in),
        blocks_(l.padded_depth / block_depth),
        tiles_(l.padded_columns / 8),
        rows_(rows),
        first_(first),
        space_(space) {}

  __device__ __forceinline__ void multiply(const Bfloat16* weights) {
    const uint4* const of_lane = reinterpret_cast<const uint4*>(weights) + lane();
    const auto of_block = [&](int block) { return of_lane + block * tiles_ * warp_size; };
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

  // The sums of all warps, written row by row.
  __device__ __forceinline__ void store() {
    constexpr int columns = tiles_at_once / 2;  // tiles of 8
    float4* const parts = reinterpret_cast<float4*>(space_);
    float4 result[max_tiles / columns];
    const int own = warp() / 2, own_rows = warp() % 2;
#pragma unroll
    for (int round = 0; round < max_tiles / columns; ++round) {
      if (round * columns >= tiles_) break;
#pragma unroll
      for (int j = 0; j < columns; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float(&sum)[4] = sum_[i][round * columns + j];
          if (round * columns + j < tiles_ && i < row_tiles())
            parts[(warp() * tiles_at_once + 2 * j + i) * warp_size + lane()] = {sum[0], sum[1],
                                                                                sum[2], sum[3]};
        }
      __syncthreads();
      if (has(round * columns + own, own_rows)) {
        float4 sum = parts[warp() * warp_size + lane()];
#pragma unroll
        for (int part = 1; part < slice_warps; ++part) {
          const float4 more = parts[(part * tiles_at_once + warp()) * warp_size + lane()];
          sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
        }
        result[round] = sum;
      }
      __syncthreads();
    }
    float* const out = reinterpret_cast<float*>(space_) +
                       (own_rows * 16 + lane() / 4) * l_.output_stride() + own * 8 + lane() % 4 * 2;
#pragma unroll
    for (int round = 0; round < max_tiles / columns; ++round)
      if (has(round * columns + own, own_rows)) {
        float* const to = out + round * columns * 8;
        *reinterpret_cast<float2*>(to) = make_float2(result[round].x, result[round].y);
        *reinterpret_cast<float2*>(to + 8 * l_.output_stride()) =
            make_float2(result[round].z, result[round].w);
      }
    __syncthreads();
  }

 private:
  static constexpr int block_depth = SliceLimits<Bfloat16>::depth_step,
                       max_tiles = SliceLimits<Bfloat16>::max_columns / 8;
  static constexpr int stages = 4;  // blocks of k on their way

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
  // The same where the input is not rounded or not aligned. A loop through memory of this thread
  // alone, since its code is long.
  __device__ __forceinline__ void round(int block, uint4 (&x)[4]) const {
    const int k = block * block_depth + lane() % 4 * 8;
    uint4* const staged = reinterpret_cast<uint4*>(space_) + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      const int row = lane() / 4 + 8 * i;
      staged[i * slice_threads] =
          row < rows_ ? std::bit_cast<uint4>(load_piece<Bfloat16>(in_, first_ + row, k, l_.depth))
                      : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = staged[i * slice_threads];
  }

  __device__ __forceinline__ void add(const uint4* weights, const uint4 (&x)[4]) {
    const bool both = row_tiles() > 1;
#pragma unroll
    for (int j = 0; j < max_tiles; ++j) {
      if (j >= tiles_) break;
      const uint4 w = weights[j * warp_size];
      multiply_tile(sum_[0][j], x[0].x, x[1].x, x[0].y, x[1].y, w.x, w.y);
      if (both) multiply_tile(sum_[1][j], x[2].x, x[3].x, x[2].y, x[3].y, w.x, w.y);
      multiply_tile(sum_[0][j], x[0].z, x[1].z, x[0].w, x[1].w, w.z, w.w);
      if (both) multiply_tile(sum_[1][j], x[2].z, x[3].z, x[2].w, x[3].w, w.z, w.w);
    }
  }

  __device__ __forceinline__ bool has(int column_tile, int row_tile) const {
    return column_tile < tiles_ && row_tile < row_tiles();
  }
  __device__ __forceinline__ int row_tiles() const {
    return rows_ > tile_rows / 2 ? 2 : 1;
  }
  __device__ __forceinline__ static int warp() {
    return static_cast<int>(threadIdx.x) / warp_size;
  }
  __device__ __forceinline__ static int lane() {
    return static_cast<int>(threadIdx.x) % warp_size;
  }

  const SliceLayout& l_;
  const SliceInput& in_;
  const int blocks_, tiles_, rows_;
  const std::int64_t first_;
  unsigned char* const space_;
  float sum_[2][max_tiles][4] = {};
};

/// Multiplies rows [first, first + rows) of the input, at most tile_rows, with the slice. Returns
/// with the sums in `space`, where output() reads them; barriers before and after are included.
/// between() is called between the loads of the input and the sum over the warps.
template <class Between>
__device__ __forceinline__ void slice_product(const SliceLayout& l, const Bfloat16* weights,
                                              const SliceInput& in, std::int64_t first, int rows,
                                              unsigned char* space, Between between) {
  __syncthreads();  // the space has been read
  TensorCores product(l, in, first, rows, space);
  product.multiply(weights);
  between();
  __syncthreads();
  product.store();
}

}  // namespace nmt::cuda
