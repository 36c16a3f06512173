#pragma once

// Products of float32 with a slice (slice.h) by multiply-adds. The rows are staged through shared
// memory in chunks of k, the next one on its way from the L2 cache while the block computes.

#include "cuda/kernels/recurrent/persistent/slice.h"

namespace nmt::cuda {

/// Stores a piece of the weights of column n.
__device__ __forceinline__ void store_piece(const SliceLayout& l, std::int32_t n,
                                            std::int32_t piece, const Piece<float>& value,
                                            float* weights) {
  *reinterpret_cast<Piece<float>*>(weights + n * l.weight_stride<float>() +
                                   piece * Piece<float>::size) = value;
}

/// Multiply-adds. A thread has the outputs of rows r and r + 16 and of four columns.
class MultiplyAdds {
 public:
  static constexpr int chunk = chunk_bytes / 4, stride = chunk + Piece<float>::size;
  __device__ __forceinline__ explicit MultiplyAdds(const SliceLayout& l) {
    const int tiles = tile_rows / 2 * l.padded_columns / 4, thread = static_cast<int>(threadIdx.x);
    part_ = thread / tiles;
    row_ = thread % tiles % (tile_rows / 2);
    column_ = thread % tiles / (tile_rows / 2) * 4;
  }
  __device__ __forceinline__ int part() const { return part_; }

  /// Adds the products of `depth` staged k.
  __device__ __forceinline__ void add(const SliceLayout& l, int depth, const float* staged,
                                      const float* weights) {
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
  __device__ __forceinline__ void store(const SliceLayout& l, bool accumulate, float* out) {
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

/// Multiplies rows [first, first + rows) of the input, at most tile_rows, with the slice. Returns
/// with the sums in `space`, where output() reads them; barriers before and after are included.
template <int max_columns, class Between>
__device__ __forceinline__ void slice_product(const SliceLayout& l, const float* weights,
                                              const SliceInput& in, std::int64_t first, int rows,
                                              unsigned char* space, Between between) {
  constexpr int chunk = MultiplyAdds::chunk, stride = MultiplyAdds::stride,
                pieces_per_thread = tile_rows * chunk_bytes / 16 / slice_threads,
                row_pieces = chunk / Piece<float>::size;
  float* const staged = reinterpret_cast<float*>(space);
  const int thread = static_cast<int>(threadIdx.x);
  Piece<float> next[pieces_per_thread];
  const auto load = [&](int begin) {
#pragma unroll
    for (int j = 0; j < pieces_per_thread; ++j) {
      const int piece = thread + j * slice_threads, row = piece / row_pieces,
                k = begin + piece % row_pieces * Piece<float>::size;
      next[j] = row < rows ? load_piece<float>(in, first + row, k, l.depth) : Piece<float>{};
    }
  };
  MultiplyAdds sums(l);
  load(0);
  for (int begin = 0; begin < l.padded_depth; begin += chunk) {
    __syncthreads();  // the space has been read
#pragma unroll
    for (int j = 0; j < pieces_per_thread; ++j) {
      const int piece = thread + j * slice_threads;
      *reinterpret_cast<Piece<float>*>(staged + piece / row_pieces * stride +
                                       piece % row_pieces * Piece<float>::size) = next[j];
    }
    __syncthreads();
    if (begin + chunk < l.padded_depth) load(begin + chunk);
    const int depth = l.padded_depth - begin < chunk ? l.padded_depth - begin : chunk;
    sums.add(l, depth, staged, weights + begin);
  }
  between();
  __syncthreads();
  float* const out = reinterpret_cast<float*>(space);
  for (int done = 0; done < l.parts; done += l.copies) {
    const int part = sums.part();
    if (part >= done && part < done + l.copies && part < l.parts)
      sums.store(l, done > 0, out + (part - done) * l.output_size());
    __syncthreads();
  }
}

}  // namespace nmt::cuda
