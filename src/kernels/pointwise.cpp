#include "kernels/pointwise.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "kernels/math.h"
#include "kernels/random/philox_words.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace nmt::kernels {
namespace {

// Minimum work per thread: below two of these, waking a second thread costs more than it saves.
constexpr std::int64_t elements_grain = 8192, columns_grain = 32;

std::int64_t rows_grain(std::int64_t width) {
  return width >= elements_grain ? 1 : elements_grain / (width > 0 ? width : 1);
}

// Dropout of n elements starting at mask element `first`.
class Mask {
 public:
  Mask(float p, std::uint64_t key, std::uint64_t stream)
      : threshold_(static_cast<std::uint32_t>(static_cast<double>(p) * 4294967296.0)),
        scale_(1.0f / (1.0f - p)),
        key_(key),
        stream_(stream) {}

  void apply(std::int64_t first, std::int64_t n, const float* x, float* y) const {
    for (std::int64_t done = 0; done < n;) {
      const std::int64_t left = n - done + (first + done) % 4;
      // Fewer for the rest of a short row.
      done += left > 32 ? some<32>(first + done, n - done, x + done, y + done)
                        : some<16>(first + done, n - done, x + done, y + done);
    }
  }

 private:
  template <int counters>
  std::int64_t some(std::int64_t first, std::int64_t n, const float* x, float* y) const {
    std::uint32_t words[4 * counters];
    philox_words<counters>(key_, static_cast<std::uint64_t>(first) / 4, stream_, words);
    const std::uint32_t* word = words + first % 4;
    const std::int64_t most = 4 * counters - first % 4, count = n < most ? n : most;
    const std::uint32_t threshold = threshold_;
    const float scale = scale_;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const float scaled = x[i] * scale;
      y[i] = word[i] >= threshold ? scaled : 0.0f;
    }
    return count;
  }

  std::uint32_t threshold_;
  float scale_;
  std::uint64_t key_, stream_;
};

}  // namespace

void fill(const Cpu& cpu, float* x, std::int64_t n, float value) {
  cpu.pool->parallel_for(n, elements_grain, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) x[i] = value;
  });
}

void add_scaled(const Cpu& cpu, std::int64_t n, float alpha, const float* x, float* y) {
  cpu.pool->parallel_for(n, elements_grain, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) y[i] += alpha * x[i];
  });
}

void scale(const Cpu& cpu, std::int64_t n, float alpha, const float* x, float* y) {
  cpu.pool->parallel_for(n, elements_grain, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) y[i] = alpha * x[i];
  });
}

void add(const Cpu& cpu, std::int64_t n, const float* x, const float* y, float* z) {
  cpu.pool->parallel_for(n, elements_grain, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) z[i] = x[i] + y[i];
  });
}

void add_bias(const Cpu& cpu, std::int64_t rows, std::int64_t width, const float* x,
              const float* bias, float* y) {
  cpu.pool->parallel_for(rows, rows_grain(width), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) y[r * width + i] = x[r * width + i] + bias[i];
  });
}

void sum_rows(const Cpu& cpu, std::int64_t rows, std::int64_t width, const float* dy,
              float* dbias) {
  // Threads split columns and add rows in order, so the sum does not depend on the number of
  // threads.
  const std::int64_t grain = rows * width < 2 * elements_grain ? width : columns_grain;
  cpu.pool->parallel_for(width, grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = 0; r < rows; ++r)
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) dbias[i] += dy[r * width + i];
  });
}

void tanh_forward(const Cpu& cpu, std::int64_t n, const float* x, float* y) {
  cpu.pool->parallel_for(n, elements_grain, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) y[i] = math::tanh(x[i]);
  });
}

void tanh_backward(const Cpu& cpu, std::int64_t n, const float* y, const float* dy, float* dx,
                   bool adds) {
  cpu.pool->parallel_for(n, elements_grain, [=](std::int64_t begin, std::int64_t end) {
    if (!adds) std::fill(dx + begin, dx + end, 0.0f);
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) dx[i] += dy[i] * (1.0f - y[i] * y[i]);
  });
}

void dropout(const Cpu& cpu, std::int64_t rows, std::int64_t width, const RowMap& map, float p,
             std::uint64_t key, std::uint64_t stream, const float* x, float* y) {
  NMT_CHECK(p >= 0.0f && p < 1.0f, "dropout: probability {} is not in [0, 1)", p);
  const Mask mask(p, key, stream);
  if (map.in_order()) {
    cpu.pool->parallel_for(rows * width, elements_grain, [=](std::int64_t begin, std::int64_t end) {
      mask.apply(begin, end - begin, x + begin, y + begin);
    });
    return;
  }
  cpu.pool->parallel_for(rows, rows_grain(width), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      mask.apply(map(r) * width, width, x + r * width, y + r * width);
  });
}

void gather_rows(const Cpu& cpu, std::int64_t rows, std::int64_t width, const std::int32_t* ids,
                 const float* table, float* out) {
  cpu.pool->parallel_for(rows, rows_grain(width), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      std::memcpy(out + r * width, table + ids[r] * width,
                  static_cast<std::size_t>(width) * sizeof(float));
  });
}

void pick(const Cpu&, std::int64_t rows, std::int64_t width, const float* x,
          const std::int32_t* columns, float* out) {
  for (std::int64_t r = 0; r < rows; ++r) out[r] = x[r * width + columns[r]];
}

std::vector<std::int32_t> id_runs(std::span<const std::int32_t> ids) {
  const auto n = static_cast<std::int32_t>(ids.size());
  std::vector<std::int32_t> runs(2 * ids.size() + 1, n);
  const auto positions = runs.begin(), behind = positions + n;
  std::iota(positions, behind, 0);
  std::stable_sort(positions, behind,
                   [&](std::int32_t a, std::int32_t b) { return ids[a] < ids[b]; });
  auto start = behind;
  for (std::int32_t i = 0; i < n; ++i)
    if (i == 0 || ids[runs[i]] != ids[runs[i - 1]]) *start++ = i;
  return runs;
}

void scatter_add_rows(const Cpu& cpu, std::int64_t rows, std::int64_t width,
                      std::int64_t vocabulary, const std::int32_t* ids, const std::int32_t*,
                      const float* dy, float* dtable) {
  for (std::int64_t r = 0; r < rows; ++r)
    NMT_CHECK(ids[r] >= 0 && ids[r] < vocabulary, "token id {} is not in a vocabulary of size {}",
              ids[r], vocabulary);
  // Threads split columns, so that the rows of an id are added in order without locking.
  const std::int64_t grain = rows * width < 2 * elements_grain ? width : columns_grain;
  cpu.pool->parallel_for(width, grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* from = dy + r * width;
      float* to = dtable + ids[r] * width;
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) to[i] += from[i];
    }
  });
}

void add_to_rows(const Cpu& cpu, std::int64_t rows, std::int64_t width, const std::int32_t* targets,
                 const float* from, float* to) {
  cpu.pool->parallel_for(rows, rows_grain(width), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const float* source = from + r * width;
      float* target = to + targets[r] * width;
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) target[i] += source[i];
    }
  });
}

void copy_columns(const Cpu& cpu, std::int64_t rows, std::int64_t width, const float* from,
                  std::int64_t from_stride, float* to, std::int64_t to_stride, bool accumulate) {
  cpu.pool->parallel_for(rows, rows_grain(width), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const float* source = from + r * from_stride;
      float* target = to + r * to_stride;
      if (accumulate) {
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) target[i] += source[i];
      } else {
        std::memcpy(target, source, static_cast<std::size_t>(width) * sizeof(float));
      }
    }
  });
}

}  // namespace nmt::kernels
