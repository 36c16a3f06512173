#pragma once

// Layer normalization within persistent recurrences: the blocks that hold the channels of a row
// exchange two numbers each for every plane, before and after a barrier of blocks.

#include "cuda/kernels/recurrent/persistent/persistent.h"
#include "cuda/kernels/reduce.h"
#include "kernels/layer_norm.h"

namespace nmt::cuda {

struct TwoSums {
  float first, second;
};

/// The memory in which the blocks of a set exchange the statistics of a product with `planes`
/// planes.
template <int planes>
class RowExchange {
 public:
  __device__ __forceinline__ RowExchange(const PersistentPlan& plan, const PersistentSlice& slice,
                                         float* partial)
      : plan_(plan), slice_(slice), partial_(reinterpret_cast<float2*>(partial)) {}

  /// Stores compute(row of the tile, plane), which a warp computes, for the rows of a tile.
  template <class Compute>
  __device__ __forceinline__ void put(std::int64_t first, int rows, Compute compute) const {
    for (int row = warp(); row < rows; row += slice_warps)
#pragma unroll
      for (int p = 0; p < planes; ++p) {
        const TwoSums sums = compute(row, p);
        if (lane() == 0) *slot(first + row, p, own()) = make_float2(sums.first, sums.second);
      }
  }

  /// The numbers of all slices, joined by join(plane, numbers of lane's slices...): for the rows of
  /// a tile, written to `results` in shared memory, planes * 2 numbers a row.
  template <class Join>
  __device__ __forceinline__ void get(std::int64_t first, int rows, float* results,
                                      Join join) const {
    for (int row = warp(); row < rows; row += slice_warps)
#pragma unroll
      for (int p = 0; p < planes; ++p) {
        const TwoSums sums = join([&](auto add) {
          for (int s = lane(); s < plan_.set; s += warp_size) {
            const float2 part = __ldcg(slot(first + row, p, s));
            add(part.x, part.y, channels_of(s));
          }
        });
        if (lane() == 0) {
          results[(row * planes + p) * 2] = sums.first;
          results[(row * planes + p) * 2 + 1] = sums.second;
        }
      }
    __syncthreads();
  }
  /// Whether this block stores the values that a row has once.
  __device__ __forceinline__ bool is_first() const {
    return own() == 0;
  }

  __device__ __forceinline__ static int lane() {
    return static_cast<int>(threadIdx.x) % warp_size;
  }

 private:
  __device__ __forceinline__ static int warp() {
    return static_cast<int>(threadIdx.x) / warp_size;
  }
  __device__ __forceinline__ int own() const {
    return slice_.group * plan_.slices + slice_.slice_index;
  }
  __device__ __forceinline__ float channels_of(int s) const {
    const std::int32_t left = plan_.group_width - s % plan_.slices * plan_.channels;
    return static_cast<float>(left < plan_.channels ? left : plan_.channels);
  }
  __device__ __forceinline__ float2* slot(std::int64_t row, int p, int s) const {
    return partial_ + (row * planes + p) * plan_.set + s;
  }

  const PersistentPlan& plan_;
  const PersistentSlice& slice_;
  float2* const partial_;
};

/// Mean and sum of squared differences from it over the channels of a block, by a warp:
/// value(channel of the slice).
template <class Value>
__device__ __forceinline__ TwoSums mean_and_squares(int channels, int lane, Value value) {
  float sum = 0, squares = 0;
  for (int c = lane; c < channels; c += warp_size) sum += value(c);
  const float mean = warp_sum(sum) / static_cast<float>(channels);
  for (int c = lane; c < channels; c += warp_size) {
    const float d = value(c) - mean;
    squares += d * d;
  }
  return {mean, warp_sum(squares)};
}

/// Mean and reciprocal standard deviation of a row of h channels from those of its slices (Chan,
/// Golub and LeVeque 1979, eq. 2.1).
template <class Slices>
__device__ __forceinline__ TwoSums join_means(float h, Slices slices) {
  float sum = 0, squares = 0;
  slices([&](float mean, float, float n) { sum += mean * n; });
  const float mean = warp_sum(sum) / h;
  slices([&](float of_slice, float of_squares, float n) {
    const float d = of_slice - mean;
    squares += of_squares + n * d * d;
  });
  return {mean, 1.0f / sqrtf(warp_sum(squares) / h + kernels::layer_norm_epsilon)};
}

/// Sums over the slices.
template <class Slices>
__device__ __forceinline__ TwoSums join_sums(Slices slices) {
  TwoSums sums{0, 0};
  slices([&](float first, float second, float) {
    sums.first += first;
    sums.second += second;
  });
  return {warp_sum(sums.first), warp_sum(sums.second)};
}

}  // namespace nmt::cuda
