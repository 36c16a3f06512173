#include "kernels/softmax_loss.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "kernels/block_maximum.h"
#include "kernels/decoding/top_k.h"
#include "kernels/math.h"
#include "kernels/products/blocks/cache_size.h"
#include "kernels/products/gemm.h"
#include "kernels/products/product.h"
#include "kernels/products/product_method.h"
#include "kernels/products/tile.h"
#include "kernels/recurrent/rows.h"
#include "kernels/sums.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nmt::kernels {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Floats of the logits of a chunk. They should stay in the last-level cache until the gradient of
// the table has read them. Each chunk reads the table twice, and reads and writes its gradient, so
// few large chunks are faster: a quarter of the cache, from 8 to 64 MB.
std::int64_t cached_floats() {
  constexpr std::int64_t least = 8 << 20, most = 64 << 20;
  return std::clamp(third_level_cache() / 4, least, most) /
         static_cast<std::int64_t>(sizeof(float));
}

// Rows whose gradients are added to one sum of the bias gradient while they are in the cache. The
// order of additions does not depend on the number of threads.
constexpr std::int64_t bias_rows = 16;

// Layout of the scratch. The plan depends only on the sizes and the machine, so the order of all
// sums is fixed.
struct Plan {
  std::int64_t chunk, stride, logits, by_symbol, by_channel, bias_sums, losses, total;
  Plan(const Cpu& cpu, std::int64_t rows, std::int64_t width, std::int64_t vocabulary) {
    constexpr std::int64_t min_rows = 128, max_rows = 2048;
    static const std::int64_t cached = cached_floats();
    stride = divide_up(vocabulary, 16) * 16;
    if (stride % 1024 == 0) stride += 16;  // rows a multiple of 4 KB apart would share cache sets
    const std::int64_t fitting = std::clamp(cached / stride, min_rows, max_rows);
    chunk = divide_up(rows, divide_up(rows > 0 ? rows : 1, fitting));
    logits = 0;
    by_symbol = logits + chunk * stride;
    by_channel = by_symbol + divide_up(packed_size(cpu, width, vocabulary), 16) * 16;
    bias_sums = by_channel + divide_up(packed_size(cpu, vocabulary, width), 16) * 16;
    losses = bias_sums + divide_up(chunk, bias_rows) * stride;
    total = losses + 4 * divide_up(rows, 4) * 4;
  }
};

struct RowLoss {
  double cross_entropy, smoothed;
};
static_assert(sizeof(RowLoss) == 4 * sizeof(float));

struct Survey {
  float top, sum;
};

// Sums of a row are the sums of its chunks, added in order: a chunk stays in the L1 cache.
constexpr std::int64_t sum_chunk = 512;
template <class Chunk>
float sum_chunks(std::int64_t n, const Chunk& chunk) {
  float sum = 0;
  for (std::int64_t i = 0; i < n; i += sum_chunk) sum += chunk(i, std::min(sum_chunk, n - i));
  return sum;
}

// Adds the bias, if any; computes maximum and sum of a row. The sum propagates NaN.
Survey survey(std::int64_t n, const float* bias, float* x) {
  float top = x[0] + (bias ? bias[0] : 0.0f);
  const float sum = sum_chunks(n, [&](std::int64_t first, std::int64_t count) {
    float* const y = x + first;
    if (bias) {
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) y[i] += bias[first + i];
    }
    float largest = top;
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < count; ++i) largest = y[i] > largest ? y[i] : largest;
    top = largest;
    return sum_of(count, y);
  });
  return {top, sum};
}

// The sum of e^(x - top) over at most sum_chunk elements, each of which `use` gets with its index.
template <class Use>
[[gnu::always_inline]] inline float exponentials_of_chunk(std::int64_t n, float top, const float* x,
                                                          const Use& use) {
  alignas(64) float partial[partial_sums] = {};
  std::int64_t i = 0;
  for (; i + partial_sums <= n; i += partial_sums)
#pragma omp simd
    for (int l = 0; l < partial_sums; ++l) {
      const float y = math::exp_of_negative(x[i + l] - top);
      use(i + l, y);
      partial[l] += y;
    }
  for (int l = 0; i < n; ++l, ++i) {
    const float y = math::exp_of_negative(x[i] - top);
    use(i, y);
    partial[l] += y;
  }
  return sum_of(partial_sums, partial);
}

float sum_exp(std::int64_t n, float top, const float* x) {
  return sum_chunks(n, [=](std::int64_t first, std::int64_t count) {
    return exponentials_of_chunk(count, top, x + first, [](std::int64_t, float) {});
  });
}

// Replaces x by its exponentials and returns their sum.
float exponentials(std::int64_t n, float top, float* x) {
  return sum_chunks(n, [=](std::int64_t first, std::int64_t count) {
    float* const y = x + first;
    return exponentials_of_chunk(count, top, y, [y](std::int64_t i, float e) { y[i] = e; });
  });
}

// Replaces one row of logits by its gradient, scale (p - q), unless no gradient is requested.
RowLoss row_loss(const SoftmaxLoss& loss, std::int32_t target, double information, float* x) {
  const std::int64_t n = loss.vocabulary;
  if (target == no_target) {
    if (loss.dx) std::fill_n(x, n, 0.0f);
    return {0, 0};
  }
  const Survey range = survey(n, loss.bias, x);
  const double label = x[target];
  const float sum = loss.dx ? exponentials(n, range.top, x) : sum_exp(n, range.top, x);
  const double log_sum =
      static_cast<double>(range.top) + math::portable_log(static_cast<double>(sum));
  const double s = static_cast<double>(loss.smoothing);
  if (loss.dx) {
    const float factor = loss.scale / sum,
                rest = loss.scale * loss.smoothing / static_cast<float>(n);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) x[i] = x[i] * factor - rest;
    x[target] -= loss.scale * (1.0f - loss.smoothing);
  }
  // -sum q x + log sum exp + sum q log q
  return {log_sum - label, log_sum - (1.0 - s) * label -
                               s / static_cast<double>(n) * static_cast<double>(range.sum) +
                               information};
}

// Logits, losses and the gradient of the readout for rows [begin, end); `logits` points to the
// first of them, `bias_sums` to the sum of the first bias_rows of them.
void rows_forward_backward(const Cpu& cpu, const SoftmaxLoss& loss, std::int64_t begin,
                           std::int64_t end, std::int64_t stride, float* logits,
                           const float* by_symbol, const float* by_channel, float* bias_sums,
                           double information, RowLoss* losses) {
  const std::int64_t rows = end - begin, width = loss.width, vocabulary = loss.vocabulary;
  product_part({.m = rows,
                .n = vocabulary,
                .k = width,
                .a = loss.x + begin * width,
                .lda = width,
                .packed = by_symbol,
                .c = logits,
                .ldc = stride,
                .rounded = bf16_products(cpu)},
               0, rows, 0, vocabulary);
  for (std::int64_t r = 0; r < rows; ++r) {
    float* const row = logits + r * stride;
    losses[begin + r] = row_loss(loss, loss.target[begin + r], information, row);
    if (!loss.dx || !loss.dbias) continue;
    float* const sums = bias_sums + r / bias_rows * stride;
    if (r % bias_rows == 0)
      std::copy_n(row, vocabulary, sums);
    else
      add_floats(vocabulary, row, sums);
  }
  if (loss.dx)
    product_part({.m = rows,
                  .n = width,
                  .k = vocabulary,
                  .a = logits,
                  .lda = stride,
                  .packed = by_channel,
                  .c = loss.dx + begin * width,
                  .ldc = width,
                  .rounded = bf16_products(cpu)},
                 0, rows, 0, width);
}

// Adds the gradients of tokens [begin, end) over a chunk of rows that starts at `first`.
void table_gradient(const Cpu& cpu, const SoftmaxLoss& loss, std::int64_t first, std::int64_t rows,
                    std::int64_t begin, std::int64_t end, std::int64_t stride, const float* logits,
                    const float* bias_sums) {
  product_part({.m = loss.vocabulary,
                .n = loss.width,
                .k = rows,
                .a = logits,
                .lda = stride,
                .transpose_a = true,
                .b = loss.x + first * loss.width,
                .ldb = loss.width,
                .accumulate = first > 0 || loss.dtable_beta != 0.0f,
                .c = loss.dtable,
                .ldc = loss.width,
                .library = cpu.products,
                .rounded = bf16_products(cpu)},
               begin, end, 0, loss.width);
  if (loss.dbias)
    for (std::int64_t block = 0; block < divide_up(rows, bias_rows); ++block)
      add_floats(end - begin, bias_sums + block * stride + begin, loss.dbias + begin);
}

}  // namespace

double smoothing_information(double smoothing, std::int64_t vocabulary) {
  const double other = smoothing / static_cast<double>(vocabulary), label = 1.0 - smoothing + other;
  return label * std::log(label) +
         (other > 0 ? static_cast<double>(vocabulary - 1) * other * std::log(other) : 0.0);
}

std::int64_t softmax_loss_scratch(const Cpu& cpu, std::int64_t rows, std::int64_t width,
                                  std::int64_t vocabulary) {
  return Plan(cpu, rows, width, vocabulary).total;
}

void softmax_loss(const Cpu& cpu, const SoftmaxLoss& loss) {
  const std::int64_t rows = loss.rows, width = loss.width, vocabulary = loss.vocabulary;
  for (std::int64_t r = 0; r < rows; ++r)
    NMT_CHECK(loss.target[r] == no_target || (loss.target[r] >= 0 && loss.target[r] < vocabulary),
              "target token id {} is not in a vocabulary of size {}", loss.target[r], vocabulary);
  const Plan plan(cpu, rows, width, vocabulary);
  float* const logits = loss.scratch + plan.logits;
  float* const by_symbol = loss.scratch + plan.by_symbol;
  float* const by_channel = loss.scratch + plan.by_channel;
  float* const bias_sums = loss.scratch + plan.bias_sums;
  RowLoss* const losses = reinterpret_cast<RowLoss*>(loss.scratch + plan.losses);
  const double information = smoothing_information(static_cast<double>(loss.smoothing), vocabulary);
  if (rows > 0) {
    pack(cpu, true, width, vocabulary, loss.table, width, by_symbol);
    if (loss.dx) pack(cpu, false, vocabulary, width, loss.table, width, by_channel);
  }
  for (std::int64_t first = 0; first < rows; first += plan.chunk) {
    const std::int64_t count = rows - first < plan.chunk ? rows - first : plan.chunk;
    cpu.pool->parallel_for(count, bias_rows, [&](std::int64_t begin, std::int64_t end) {
      rows_forward_backward(cpu, loss, first + begin, first + end, plan.stride,
                            logits + begin * plan.stride, by_symbol, by_channel,
                            bias_sums + begin / bias_rows * plan.stride, information, losses);
    });
    if (loss.dx)
      cpu.pool->parallel_for(vocabulary, tile_rows, [&](std::int64_t begin, std::int64_t end) {
        table_gradient(cpu, loss, first, count, begin, end, plan.stride, logits, bias_sums);
      });
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    *loss.cross_entropy += losses[r].cross_entropy;
    *loss.smoothed += losses[r].smoothed;
  }
}

namespace {

float log_sum_exp_row(std::int64_t n, const float* x, float top) {
  return static_cast<float>(static_cast<double>(top) +
                            math::portable_log(static_cast<double>(sum_exp(n, top, x))));
}

float log_sum_exp_row(std::int64_t n, const float* x) {
  return log_sum_exp_row(n, x, block_maximum(x, n));
}

}  // namespace

void log_sum_exp(const Cpu& cpu, std::int64_t rows, std::int64_t vocabulary, const float* logits,
                 float* out) {
  cpu.pool->parallel_for(rows, 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      out[r] = log_sum_exp_row(vocabulary, logits + r * vocabulary);
  });
}

void finish_logits(const Cpu& cpu, std::int64_t rows, std::int64_t vocabulary, const float* bias,
                   float* logits, float* maxima, float* out) {
  const std::int64_t blocks = top_k_blocks(vocabulary);
  cpu.pool->parallel_for(rows, 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      float* row = logits + r * vocabulary;
      for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t first = b * top_k_block, n = std::min(top_k_block, vocabulary - first);
#pragma omp simd
        for (std::int64_t i = first; i < first + n; ++i) row[i] += bias[i];
        maxima[r * blocks + b] = block_maximum(row + first, n);
      }
      out[r] = log_sum_exp_row(vocabulary, row, block_maximum(maxima + r * blocks, blocks));
    }
  });
}

void log_sum_exp_of_columns(const Cpu& cpu, std::int64_t vocabulary, const float* logits,
                            std::span<const std::span<const std::int32_t>> columns,
                            std::int64_t width, float* picked, float* out) {
  cpu.pool->parallel_for(static_cast<std::int64_t>(columns.size()), 1,
                         [=](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t r = begin; r < end; ++r) {
                             const float* x = logits + r * vocabulary;
                             float* y = picked + r * width;
                             const auto n = static_cast<std::int64_t>(columns[r].size());
                             for (std::int64_t j = 0; j < n; ++j) y[j] = x[columns[r][j]];
                             std::fill(y + n, y + width, -std::numeric_limits<float>::infinity());
                             out[r] = log_sum_exp_row(n, y);
                           }
                         });
}

}  // namespace nmt::kernels
