#pragma once

// Parts of steps that a block computes for a whole row. A thread always has the same columns, so it
// reads what it wrote without a barrier.

#include "cuda/kernels/recurrent/unit_ahead.h"
#include "cuda/kernels/reduce.h"
#include "kernels/layer_norm.h"

namespace nmt::cuda {

/// Columns of a thread whose values stay in registers: all columns of rows of up to 1,024 channels.
/// The values of further columns are in memory between the parts of a kernel.
constexpr int kept_columns = 2;

/// use(k, column) for those columns, the k-th one of this thread.
template <class Use>
__device__ __forceinline__ void each_kept(std::int64_t h, Use&& use) {
#pragma unroll
  for (int k = 0; k < kept_columns; ++k) {
    const std::int64_t column = k * blockDim.x + threadIdx.x;
    if (column < h) use(k, column);
  }
}
/// use(column) for the others.
template <class Use>
__device__ __forceinline__ void each_further(std::int64_t h, Use&& use) {
#pragma unroll 1
  for (std::int64_t column = kept_columns * blockDim.x + threadIdx.x; column < h;
       column += blockDim.x)
    use(column);
}

/// A number for each plane of a kept column.
template <int planes>
using Kept = float[kept_columns][at_least_one(planes)];

/// Turns a product into the unit's input: adds the bias and normalizes the planes.
template <int planes>
class Completion {
 public:
  __device__ __forceinline__ Completion(float* y, const float* bias, const RowNorm& norm,
                                        std::int64_t row, std::int64_t h)
      : bias_(bias),
        norm_(norm),
        row_(row),
        h_(h),
        inverse_(1.0f / static_cast<float>(h)),
        y_(y + row * planes * h) {}
  /// Loads what does not depend on the product. Before run().
  __device__ __forceinline__ void load() {
    each_kept(h_, [&](int k, std::int64_t column) {
      if (bias_) load_planes<planes>(bias_, 0, column, h_, add_[k]);
      if (!norm_.gain) return;
      load_planes<planes>(norm_.gain, 0, column, h_, gain_[k]);
      load_planes<planes>(norm_.norm_bias, 0, column, h_, norm_bias_[k]);
    });
  }
  /// kept(k): the values of a kept column, which are completed in registers and in memory.
  template <class Values>
  __device__ __forceinline__ void run(Values&& kept) {
    if constexpr (planes > 0) {
      if (!norm_.gain && !bias_) return;
      float mean[planes] = {}, scale[planes] = {};
      each_kept(h_, [&](int k, std::int64_t column) {
#pragma unroll
        for (int p = 0; p < planes; ++p) {
          if (bias_) kept(k)[p] += add_[k][p];
          mean[p] += kept(k)[p];
        }
        if (!norm_.gain) store_planes<planes>(y_, 0, column, h_, kept(k));
      });
      each_further(h_, [&](std::int64_t column) {
#pragma unroll
        for (int p = 0; p < planes; ++p) {
          const std::int64_t i = p * h_ + column;
          if (bias_) y_[i] += bias_[i];
          mean[p] += y_[i];
        }
      });
      if (!norm_.gain) return;
      block_sums(mean);
#pragma unroll
      for (int p = 0; p < planes; ++p) mean[p] *= inverse_;
      const auto square = [&](int p, float value) {
        const float d = value - mean[p];
        scale[p] += d * d;
      };
      each_kept(h_, [&](int k, std::int64_t) {
#pragma unroll
        for (int p = 0; p < planes; ++p) square(p, kept(k)[p]);
      });
      each_further(h_, [&](std::int64_t column) {
#pragma unroll
        for (int p = 0; p < planes; ++p) square(p, y_[p * h_ + column]);
      });
      block_sums(scale);
#pragma unroll
      for (int p = 0; p < planes; ++p) {
        scale[p] = 1.0f / sqrtf(scale[p] * inverse_ + kernels::layer_norm_epsilon);
        if (norm_.rstd && threadIdx.x == 0) norm_.rstd[row_ * planes + p] = scale[p];
      }
      const auto normalize = [&](int p, std::int64_t i, float gain, float norm_bias, float value) {
        const float n = (value - mean[p]) * scale[p];
        if (norm_.normal) norm_.normal[row_ * planes * h_ + i] = n;
        return y_[i] = n * gain + norm_bias;
      };
      each_kept(h_, [&](int k, std::int64_t column) {
#pragma unroll
        for (int p = 0; p < planes; ++p)
          kept(k)[p] = normalize(p, p * h_ + column, gain_[k][p], norm_bias_[k][p], kept(k)[p]);
      });
      each_further(h_, [&](std::int64_t column) {
#pragma unroll
        for (int p = 0; p < planes; ++p) {
          const std::int64_t i = p * h_ + column;
          normalize(p, i, norm_.gain[i], norm_.norm_bias[i], y_[i]);
        }
      });
    }
  }

 private:
  const float* bias_;
  const RowNorm& norm_;
  std::int64_t row_, h_;
  float inverse_;
  float* y_;
  Kept<planes> add_, gain_, norm_bias_;
};

/// Turns the gradient of the unit's input into that of the product (equation: norm_rows.h).
template <int planes>
class GradientCompletion {
 public:
  __device__ __forceinline__ GradientCompletion(const RowNorm& norm, std::int64_t row,
                                                std::int64_t h)
      : norm_(norm), row_(row), h_(h), inverse_(1.0f / static_cast<float>(h)) {}
  /// Loads what does not depend on the gradient. Before run().
  __device__ __forceinline__ void load() {
    if (!norm_.gain) return;
#pragma unroll
    for (int p = 0; p < planes; ++p) rstd_[p] = norm_.rstd[row_ * planes + p];
    const std::int64_t sums = row_ * norm_.sums_stride;
    each_kept(h_, [&](int k, std::int64_t column) {
      load_planes<planes>(norm_.normal, row_, column, h_, normal_[k]);
      load_planes<planes>(norm_.gain, 0, column, h_, gain_[k]);
      load_planes<planes>(norm_.gain_sums + sums, 0, column, h_, gain_sum_[k]);
      load_planes<planes>(norm_.norm_bias_sums + sums, 0, column, h_, norm_bias_sum_[k]);
    });
  }
  /// kept(k): the gradients of a kept column, completed in registers; gradients of further columns
  /// are completed in dy.
  template <class Values>
  __device__ __forceinline__ void run(float* dy, Values&& kept) {
    if constexpr (planes > 0) {
      if (!norm_.gain) return;
      float* const dy_row = dy + row_ * planes * h_;
      const float* const normal = norm_.normal + row_ * planes * h_;
      float *const gain_sums = norm_.gain_sums + row_ * norm_.sums_stride,
                   *const norm_bias_sums = norm_.norm_bias_sums + row_ * norm_.sums_stride;
      // The sums of the gradients of the normalized values, and of their products with these.
      float sums[2 * planes] = {};
      const auto add = [&](int p, float d, float gain, float n) {
        const float g = d * gain;
        sums[p] += g;
        sums[planes + p] += g * n;
      };
      each_kept(h_, [&](int k, std::int64_t) {
#pragma unroll
        for (int p = 0; p < planes; ++p) add(p, kept(k)[p], gain_[k][p], normal_[k][p]);
      });
      each_further(h_, [&](std::int64_t column) {
#pragma unroll
        for (int p = 0; p < planes; ++p) {
          const std::int64_t i = p * h_ + column;
          add(p, dy_row[i], norm_.gain[i], normal[i]);
        }
      });
      block_sums(sums);
      const auto gradient = [&](int p, float d, float gain, float n) {
        return rstd_[p] * (d * gain - sums[p] * inverse_ - n * sums[planes + p] * inverse_);
      };
      each_kept(h_, [&](int k, std::int64_t column) {
#pragma unroll
        for (int p = 0; p < planes; ++p) {
          const std::int64_t i = p * h_ + column;
          const float d = kept(k)[p], n = normal_[k][p];
          gain_sums[i] = gain_sum_[k][p] + d * n;
          norm_bias_sums[i] = norm_bias_sum_[k][p] + d;
          kept(k)[p] = gradient(p, d, gain_[k][p], n);
        }
      });
      each_further(h_, [&](std::int64_t column) {
#pragma unroll
        for (int p = 0; p < planes; ++p) {
          const std::int64_t i = p * h_ + column;
          const float d = dy_row[i];
          gain_sums[i] += d * normal[i];
          norm_bias_sums[i] += d;
          dy_row[i] = gradient(p, d, norm_.gain[i], normal[i]);
        }
      });
    }
  }

 private:
  const RowNorm& norm_;
  std::int64_t row_, h_;
  float inverse_;
  float rstd_[at_least_one(planes)];
  Kept<planes> normal_, gain_, gain_sum_, norm_bias_sum_;
};

/// What a thread loads of a column's step before it computes: the values that no reduction over the
/// row changes, and x and u before the reduction. X: the type of x.
template <class U, class X>
struct EarlyStep {
  Ahead<U> ahead;
  Step<float, U> loaded;  // without x and position

  __device__ __forceinline__ void load(const UnitSteps& a, const X* x, const Channel& channel,
                                       bool with_late, bool with_states = true) {
    ahead.load(a, x, channel.column, 0, StepOffsets<U>(a, channel, 0));
    load_planes<U::recurrents>(a.u, channel.row, channel.column, a.width, loaded.u);
    if (with_late) load_planes<U::late>(a.late, channel.row, channel.column, a.width, loaded.late);
    load_planes<U::vectors>(a.vectors, 0, channel.column, a.width, loaded.v);
    if (with_states) load_states<U>(a, channel, 0, loaded);
  }
  __device__ __forceinline__ bool is_live() const { return ahead.is_live(); }
  __device__ __forceinline__ Step<float, U> step() const {
    Step<float, U> step = loaded;
#pragma unroll
    for (int p = 0; p < U::inputs; ++p) step.x[p] = number_of<X>(ahead.x[p]);
#pragma unroll
    for (int p = 0; p < position_vectors_of<U>; ++p) step.position[p] = ahead.position[p];
    return step;
  }
};

/// Stores the gradients of a kept column, in float32, rounded, or both.
template <int planes, std::size_t n>
__device__ __forceinline__ void store_kept(float* to, Bfloat16* rounded, std::int64_t row,
                                           std::int64_t column, std::int64_t h,
                                           const float (&from)[n]) {
  if constexpr (planes > 0) {
    if (to) store_planes<planes>(to, row, column, h, from);
    if (rounded) store_planes<planes>(rounded, row, column, h, from);
  }
}
/// Rounds further columns, which this thread has stored.
template <int planes>
__device__ __forceinline__ void round_further(const float* from, std::int64_t row, std::int64_t h,
                                              Bfloat16* to) {
  each_further(h, [&](std::int64_t column) { round_planes<planes>(from, row, column, h, to); });
}

/// The largest number of threads of a block that computes a row. Kernels with one block per row
/// declare this launch bound: for devices newer than Hopper the compiler would otherwise give them
/// more registers than such a block can have.
constexpr unsigned max_row_block = 512;
/// Threads of a block for a row of H channels.
inline unsigned row_block(std::int64_t h) {
  return threads_for(h, max_row_block);
}

}  // namespace nmt::cuda
