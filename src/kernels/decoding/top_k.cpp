#include "kernels/decoding/top_k.h"

#include "core/error.h"
#include "core/thread_pool.h"
#include "kernels/block_maximum.h"

#include <algorithm>
#include <limits>

namespace nmt::kernels {
namespace {

constexpr float lowest = -std::numeric_limits<float>::infinity();

/// One pass that skips blocks whose maximum does not exceed the current k-th value.
template <class Maximum>
void top_k_row(const float* x, std::int64_t width, int k, std::span<const std::int32_t> skip,
               Maximum&& maximum_of, float* values, std::int32_t* columns) {
  std::fill_n(values, k, lowest);
  std::fill_n(columns, k, -1);
  for (std::int64_t begin = 0; begin < width; begin += top_k_block) {
    const std::int64_t end = std::min(begin + top_k_block, width);
    const float maximum = maximum_of(begin, end);
    if (maximum != maximum) {
      const float* nan =
          std::find_if(x + begin, x + end, [](float value) { return value != value; });
      std::fill_n(values, k, lowest);
      std::fill_n(columns, k, -1);
      values[0] = *nan;
      columns[0] = static_cast<std::int32_t>(nan - x);
      return;
    }
    if (!(maximum > values[k - 1])) continue;
    for (std::int64_t i = begin; i < end; ++i) {
      const float value = x[i];
      if (!(value > values[k - 1])) continue;  // strict: for ties the lower column wins
      const auto column = static_cast<std::int32_t>(i);
      if (std::find(skip.begin(), skip.end(), column) != skip.end()) continue;
      int place = k - 1;
      for (; place > 0 && values[place - 1] < value; --place) {
        values[place] = values[place - 1];
        columns[place] = columns[place - 1];
      }
      values[place] = value;
      columns[place] = column;
    }
  }
}

}  // namespace

void top_k(const Cpu& cpu, std::int64_t rows, std::int64_t width, const float* x, int k,
           std::span<const std::int32_t> skip, float* values, std::int32_t* columns) {
  NMT_CHECK(k >= 1, "top_k: k is {}, at least 1 is needed", k);
  cpu.pool->parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const float* row = x + r * width;
      top_k_row(
          row, width, k, skip,
          [row](std::int64_t from, std::int64_t to) {
            return block_maximum(row + from, to - from);
          },
          values + r * k, columns + r * k);
    }
  });
}

void top_k_of_blocks(const Cpu& cpu, std::int64_t rows, std::int64_t width, const float* x,
                     const float* maxima, int k, std::span<const std::int32_t> skip, float* values,
                     std::int32_t* columns) {
  NMT_CHECK(k >= 1, "top_k: k is {}, at least 1 is needed", k);
  const std::int64_t blocks = top_k_blocks(width);
  cpu.pool->parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      top_k_row(
          x + r * width, width, k, skip,
          [maxima, r, blocks](std::int64_t from, std::int64_t) {
            return maxima[r * blocks + from / top_k_block];
          },
          values + r * k, columns + r * k);
  });
}

}  // namespace nmt::kernels
