#include "kernels/decoding/top_k.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "kernels/block_maximum.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace nmt::kernels {
namespace {

constexpr float lowest = -std::numeric_limits<float>::infinity();

/// The best of a row so far, sorted, for small k.
class Sorted {
 public:
  Sorted(int k, float* values, std::int32_t* columns) : k_(k), values_(values), columns_(columns) {
    std::fill_n(values, k, lowest);
    std::fill_n(columns, k, -1);
  }
  float least() const { return values_[k_ - 1]; }
  void insert(float value, std::int32_t column) {
    int place = k_ - 1;
    for (; place > 0 && values_[place - 1] < value; --place) {
      values_[place] = values_[place - 1];
      columns_[place] = columns_[place - 1];
    }
    values_[place] = value;
    columns_[place] = column;
  }
  void finish() const {}

 private:
  int k_;
  float* values_;
  std::int32_t* columns_;
};

/// The same for large k: collects up to 2k candidates, of which it then keeps the best k.
class Collected {
 public:
  Collected(int k, float* values, std::int32_t* columns)
      : k_(static_cast<std::size_t>(k)), values_(values), columns_(columns), all_(buffer()) {
    all_.clear();
    all_.reserve(2 * k_);
  }
  float least() const { return least_; }
  void insert(float value, std::int32_t column) {
    all_.push_back({value, column});
    if (all_.size() < 2 * k_) return;
    std::nth_element(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(k_) - 1, all_.end(),
                     is_better);
    all_.resize(k_);
    least_ = all_.back().value;
  }
  void finish() const {
    std::sort(all_.begin(), all_.end(), is_better);
    all_.resize(k_, {lowest, -1});
    for (std::size_t i = 0; i < k_; ++i) {
      values_[i] = all_[i].value;
      columns_[i] = all_[i].column;
    }
  }

 private:
  struct Candidate {
    float value;
    std::int32_t column;
  };
  static bool is_better(const Candidate& a, const Candidate& b) {
    return a.value != b.value ? a.value > b.value : a.column < b.column;
  }
  static std::vector<Candidate>& buffer() {
    static thread_local std::vector<Candidate> all;
    return all;
  }

  std::size_t k_;
  float* values_;
  std::int32_t* columns_;
  std::vector<Candidate>& all_;
  float least_ = lowest;
};

// Largest k for which Sorted is faster.
constexpr int max_sorted = 64;

/// One pass that skips blocks whose maximum does not exceed the current k-th value.
template <class Best, class Maximum>
void best_of_row(const float* x, std::int64_t width, int k, std::span<const std::int32_t> skip,
                 Maximum&& maximum_of, float* values, std::int32_t* columns) {
  Best best(k, values, columns);
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
    if (!(maximum > best.least())) continue;
    for (std::int64_t i = begin; i < end; ++i) {
      const float value = x[i];
      if (!(value > best.least())) continue;  // strict: for ties the lower column wins
      const auto column = static_cast<std::int32_t>(i);
      if (std::find(skip.begin(), skip.end(), column) != skip.end()) continue;
      best.insert(value, column);
    }
  }
  best.finish();
}

template <class Maximum>
void top_k_row(const float* x, std::int64_t width, int k, std::span<const std::int32_t> skip,
               Maximum&& maximum_of, float* values, std::int32_t* columns) {
  (k <= max_sorted ? best_of_row<Sorted, Maximum>
                   : best_of_row<Collected, Maximum>)(x, width, k, skip,
                                                      std::forward<Maximum>(maximum_of), values,
                                                      columns);
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
