#include "nmt/kernels/top_k.h"

#include "nmt/core/error.h"
#include "nmt/core/thread_pool.h"

#include <algorithm>
#include <limits>

namespace nmt::kernels {
namespace {

constexpr std::int64_t block_width = 128;
constexpr float lowest = -std::numeric_limits<float>::infinity();

struct BlockSummary {
  float maximum;
  bool has_nan;
};

BlockSummary summarize(const float* x, std::int64_t n) {
  float maximum = lowest;
  int nans = 0;
#pragma omp simd reduction(max : maximum) reduction(| : nans)
  for (std::int64_t i = 0; i < n; ++i) {
    maximum = x[i] > maximum ? x[i] : maximum;
    nans |= x[i] != x[i] ? 1 : 0;
  }
  return {maximum, nans != 0};
}

/// One pass: whole blocks whose maximum does not exceed the k-th value so far are passed over.
void top_k_row(const float* x, std::int64_t width, int k, std::span<const std::int32_t> skip, float* values,
               std::int32_t* columns) {
  std::fill_n(values, k, lowest);
  std::fill_n(columns, k, -1);
  for (std::int64_t begin = 0; begin < width; begin += block_width) {
    const std::int64_t end = std::min(begin + block_width, width);
    const BlockSummary block = summarize(x + begin, end - begin);
    if (block.has_nan) {
      const float* nan = std::find_if(x + begin, x + end, [](float value) { return value != value; });
      std::fill_n(values, k, lowest);
      std::fill_n(columns, k, -1);
      values[0] = *nan;
      columns[0] = static_cast<std::int32_t>(nan - x);
      return;
    }
    if (!(block.maximum > values[k - 1])) continue;
    for (std::int64_t i = begin; i < end; ++i) {
      const float value = x[i];
      if (!(value > values[k - 1])) continue;  // strict: of equal elements the lower column stays
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
    for (std::int64_t r = begin; r < end; ++r)
      top_k_row(x + r * width, width, k, skip, values + r * k, columns + r * k);
  });
}

}  // namespace nmt::kernels
