#pragma once

// Dropout masks (kernels/pointwise.h): inside of other kernels, and element by element.

#include "cuda/kernels/vector.h"
#include "kernels/pointwise.h"

namespace nmt::cuda {

/// The mask of a tensor with rows of `width` elements.
struct DropoutMask {
  std::uint32_t threshold = 0;
  float scale = 1;
  std::uint64_t key = 0, stream = 0;
  kernels::RowMap map = {};
  std::int64_t width = 0;

  DropoutMask() = default;
  DropoutMask(const kernels::Dropout& d, std::int64_t row_width)
      : threshold(static_cast<std::uint32_t>(static_cast<double>(d.p) * 4294967296.0)),
        scale(1.0f / (1.0f - d.p)),
        key(d.key),
        stream(d.stream),
        map(d.map),
        width(row_width) {
    NMT_CHECK(d.p >= 0.0f && d.p < 1.0f, "dropout: probability {} is not in [0, 1)", d.p);
  }

  NMT_HOST_DEVICE std::array<std::uint32_t, 4> words(std::int64_t quad) const {
    return philox(key, static_cast<std::uint64_t>(quad), stream);
  }
  NMT_HOST_DEVICE float apply(std::uint32_t word, float x) const {
    return word >= threshold ? x * scale : 0.0f;
  }

  /// The element of the mask where a row starts.
  NMT_HOST_DEVICE std::int64_t start_of(std::int64_t row) const {
    return threshold == 0 ? 0 : map(row) * width;
  }
  /// Applies the mask to n elements of a row from `column` on. Four elements use the words of one
  /// counter: the width and the column must then be multiples of four.
  template <int n>
  __device__ __forceinline__ void apply(std::int64_t row, std::int64_t column, Floats<n>& x) const {
    apply_at<n>(start_of(row) + column, x);
  }
  /// The same from an element of the mask on.
  template <int n>
  __device__ __forceinline__ void apply_at(std::int64_t element, Floats<n>& x) const {
    static_assert(n == 1 || n == 4);
    if (threshold == 0) return;
    const auto word = words(element / 4);
    if constexpr (n == 4) {
#pragma unroll
      for (int i = 0; i < 4; ++i) x[i] = apply(word[static_cast<std::size_t>(i)], x[i]);
    } else {  // an index at run time would put the words into local memory
      const std::uint32_t low = element & 1 ? word[1] : word[0],
                          high = element & 1 ? word[3] : word[2];
      x[0] = apply(element & 2 ? high : low, x[0]);
    }
  }
};

}  // namespace nmt::cuda
