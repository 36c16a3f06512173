#include "cuda/kernels/assign.h"
#include "cuda/kernels/columns.h"
#include "cuda/kernels/reduce.h"
#include "cuda/kernels/running_sum.h"
#include "kernels/math.h"
#include "kernels/products/product_input.h"
#include "kernels/softmax_loss.h"

#include <cmath>

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

struct RowLoss {
  double cross_entropy, smoothed;
};

// The layout of the scratch memory. The logits of a chunk are at most four times the size of the
// output table. The layout depends on the sizes alone, so every sum has one fixed order.
struct Plan {
  std::int64_t chunk, stride, losses, total;
  Plan(std::int64_t rows, std::int64_t width, std::int64_t vocabulary) {
    constexpr std::int64_t min_rows = 64, max_rows = 2048;
    stride = divide_up(vocabulary, 32) * 32;
    const std::int64_t fitting = std::clamp(4 * width, min_rows, max_rows);
    chunk = divide_up(rows, divide_up(std::max<std::int64_t>(rows, 1), fitting));
    losses = chunk * stride;
    total = losses + rows * static_cast<std::int64_t>(sizeof(RowLoss) / sizeof(float));
  }
};

// What the rows of a chunk have in common.
template <class T>
struct LossRows {
  std::int64_t vocabulary, stride;
  const float* bias;
  const std::int32_t* target;
  float smoothing, scale;
  double information;
  T* logits;  // at `stride`
  RowLoss* losses;
  Fault* fault;
};

// n logits from column i on, with their bias.
template <int n, class T>
__device__ __forceinline__ Floats<n> biased(const T* x, const float* bias, std::int32_t i) {
  Floats<n> value = read_all<n>(x + i);
  if (!bias) return value;
  const Floats<n> more = load<n>(bias + i);
#pragma unroll
  for (int e = 0; e < n; ++e) value[e] += more[e];
  return value;
}

// body(i, tile, values) for the columns of a thread: n values, biased, from i on. With a number of
// tiles, these are known to the compiler, so that values of each tile are registers, and the loads
// of two tiles do not wait for each other.
template <int n, int tiles, class T, class Body>
__device__ __forceinline__ void each_tile(const LossRows<T>& a, const T* x, const Body& body) {
  const auto end = static_cast<std::int32_t>(a.vocabulary);
  const auto begin = static_cast<std::int32_t>(n * threadIdx.x),
             step = static_cast<std::int32_t>(n * blockDim.x);
  if constexpr (tiles == 0) {
    for (std::int32_t i = begin; i < end; i += step) {
      Floats<n> value = biased<n>(x, a.bias, i);
      body(i, 0, value);
    }
  } else {
    constexpr int at_once = 2;
    static_assert(tiles % at_once == 0);
#pragma unroll
    for (int first = 0; first < tiles; first += at_once) {
      Stored<n, T> stored[at_once]{};
      Floats<n> bias[at_once]{};
#pragma unroll
      for (int t = 0; t < at_once; ++t) {
        const std::int32_t i = begin + (first + t) * step;
        if (i < end) stored[t] = load_stored<n>(x + i);
        if (i < end && a.bias) bias[t] = load<n>(a.bias + i);
      }
#pragma unroll
      for (int t = 0; t < at_once; ++t) {
        if (begin + (first + t) * step >= end) continue;
        Floats<n> value = widened(stored[t]);
#pragma unroll
        for (int e = 0; e < n; ++e) value[e] += bias[t][e];
        body(begin + (first + t) * step, first + t, value);
      }
    }
  }
}

// Sums over a thread's columns of a row of logits. read_row() has `ahead` loads in flight at once.
struct ColumnSums {
  RunningSum exponentials;
  float all = 0.0f;  // the sum of the logits
};

template <int n, int ahead, class T>
__device__ __forceinline__ ColumnSums read_row(const LossRows<T>& a, const T* x) {
  ColumnSums sums;
  const auto end = static_cast<std::int32_t>(a.vocabulary);
  const auto step = static_cast<std::int32_t>(n * blockDim.x);
  for (auto i = static_cast<std::int32_t>(n * threadIdx.x); i < end; i += ahead * step) {
    Floats<ahead * n> value;
#pragma unroll
    for (int part = 0; part < ahead; ++part) {
      const std::int32_t column = i + part * step;
      const Floats<n> some = column < end ? biased<n>(x, a.bias, column) : Floats<n>{};
#pragma unroll
      for (int e = 0; e < n; ++e) {
        value[part * n + e] = column < end ? some[e] : -std::numeric_limits<float>::infinity();
        sums.all += some[e];
      }
    }
    sums.exponentials.add_all(value);
  }
  return sums;
}

// The loss of a row, by all threads of a block. With `gradients`, the gradients scale (p - q)
// overwrite the logits. written(tile, values as stored) is called for each tile of them.
template <int n, int tiles, class T, class Written>
__device__ __forceinline__ void row_loss(const LossRows<T>& a, std::int64_t row, bool gradients,
                                         const Written& written) {
  T* const x = a.logits + row * a.stride;
  std::int32_t symbol = a.target[row];
  if (symbol == no_target) {
    if (threadIdx.x == 0) a.losses[row] = {0, 0};
    if (gradients)
      each_tile<n, 0>(
          a, x, [&](std::int32_t i, int, const Floats<n>&) { assign_all<n>(x + i, Floats<n>{}); });
    return;
  }
  if (symbol < 0 || symbol >= a.vocabulary) {  // the same for the whole block
    if (threadIdx.x == 0) report(a.fault, symbol_outside_vocabulary, symbol, a.vocabulary);
    symbol = 0;
  }
  const double label = static_cast<double>(as_float(x[symbol]) + (a.bias ? a.bias[symbol] : 0.0f));
  auto [running, all] = read_row < n, tiles == 0 || sizeof(T) == 4 ? 2 : 4 > (a, x);
  running.join();
  all = block_sum(all);
  __syncthreads();  // every thread has read the label
  if (threadIdx.x == 0) {
    // -sum q x + log sum exp + sum q log q (Szegedy et al. 2016, section 7)
    const double log_sum =
        static_cast<double>(running.maximum) + log(static_cast<double>(running.sum));
    const double s = static_cast<double>(a.smoothing);
    a.losses[row] = {log_sum - label,
                     log_sum - (1.0 - s) * label -
                         s / static_cast<double>(a.vocabulary) * static_cast<double>(all) +
                         a.information};
  }
  if (!gradients) return;
  const float factor = a.scale / running.sum,
              rest = a.scale * a.smoothing / static_cast<float>(a.vocabulary);
  each_tile<n, tiles>(a, x, [&](std::int32_t i, int tile, Floats<n>& value) {
#pragma unroll
    for (int e = 0; e < n; ++e)
      value[e] = math::exp_of_negative(value[e] - running.maximum) * factor - rest -
                 (i + e == symbol ? a.scale * (1.0f - a.smoothing) : 0.0f);
    assign_all<n>(x + i, value);
    written(tile, value);
  });
}

constexpr int max_threads = 512;  // per block

// One block per row.
template <int n, class T>
__global__ void __launch_bounds__(max_threads)
    row_loss_kernel(LossRows<T> a, std::int64_t gradients) {
  row_loss<n, 0>(a, blockIdx.x, gradients != 0, [](int, const Floats<n>&) {});
}

// Threads of a block that sums the gradients of its rows, and four columns of a thread per tile:
// the largest vocabulary whose sums are registers is 32,768.
constexpr int sum_threads = 512, sum_tiles = 16;

// Starts to load n numbers into the L2 cache, by all threads of a block.
template <class T>
__device__ __forceinline__ void prefetch(const T* x, std::int64_t n) {
  constexpr std::int64_t line = 128 / sizeof(T);
  for (std::int64_t i = line * threadIdx.x; i < n; i += line * blockDim.x) prefetch_l2(x + i);
}

// A block computes `rows_of_block` rows, one after the other. The sums of the stored gradients over
// these rows are one row of parts [blocks, vocabulary].
template <class T>
__global__ void __launch_bounds__(sum_threads, 1)
    summed_loss_kernel(LossRows<T> a, std::int64_t rows, std::int64_t rows_of_block, float* parts) {
  const std::int64_t begin = blockIdx.x * rows_of_block,
                     end = begin + rows_of_block < rows ? begin + rows_of_block : rows;
  Float4 sums[sum_tiles] = {};
  for (std::int64_t row = begin; row < end; ++row) {
    if (row + 1 < end) prefetch(a.logits + (row + 1) * a.stride, a.vocabulary);
    row_loss<4, sum_tiles>(a, row, true, [&](int tile, const Float4& value) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[tile][e] += as_stored<T>(value[e]);
    });
  }
  float* const part = parts + blockIdx.x * a.vocabulary;
#pragma unroll
  for (int tile = 0; tile < sum_tiles; ++tile)
    if (const std::int64_t i = 4 * (threadIdx.x + std::int64_t{tile} * sum_threads);
        i < a.vocabulary)
      store4(part + i, sums[tile]);
}

__global__ void add_losses_kernel(std::int64_t rows, const RowLoss* losses, double* cross_entropy,
                                  double* smoothed) {
  double entropy = 0, smooth = 0;
  for (std::int64_t r = threadIdx.x; r < rows; r += blockDim.x) {
    entropy += losses[r].cross_entropy;
    smooth += losses[r].smoothed;
  }
  entropy = block_sum(entropy);
  smooth = block_sum(smooth);
  if (threadIdx.x == 0) {
    *cross_entropy += entropy;
    *smoothed += smooth;
  }
}

}  // namespace

std::int64_t softmax_loss_scratch(const Cuda&, std::int64_t rows, std::int64_t width,
                                  std::int64_t vocabulary) {
  return Plan(rows, width, vocabulary).total;
}

namespace {

ProductInput input_of(const float* x) {
  return x;
}
ProductInput input_of(const Bfloat16* x) {
  return {nullptr, x};
}

// Rows of each block that also sums the gradients; 0: a separate pass sums them. A part is written
// and read as float32, which costs as much as reading the gradients of 4 rows in bfloat16. With
// fewer than min_rows, blocks would be too few or too short.
std::int64_t summed_rows(const Cuda& cuda, const SoftmaxLoss& loss, std::int64_t count) {
  constexpr std::int64_t min_rows = 6;
  const std::int64_t rows = count / state_of(cuda).multiprocessors;
  if (!loss.dx || !loss.dbias || rows < min_rows || loss.vocabulary > 4 * sum_threads * sum_tiles)
    return 0;
  return divide_up(count, state_of(cuda).multiprocessors);
}

// The losses of a chunk of rows, `count` rows at `stride` of logits. With loss.dx, the gradients
// overwrite the logits. Returns whether the gradient of the bias was added.
template <class T>
bool row_losses(const Cuda& cuda, const SoftmaxLoss& loss, std::int64_t first, std::int64_t count,
                T* logits, std::int64_t stride, RowLoss* losses) {
  const double information =
      smoothing_information(static_cast<double>(loss.smoothing), loss.vocabulary);
  const LossRows<T> rows{
      loss.vocabulary, stride,      loss.bias, loss.target + first, loss.smoothing,
      loss.scale,      information, logits,    losses + first,      state_of(cuda).device_fault};
  const bool fours = stride % 4 == 0 && by_fours(loss.vocabulary, logits, loss.bias);
  if (const std::int64_t rows_each = fours ? summed_rows(cuda, loss, count) : 0; rows_each > 0) {
    const std::int64_t parts = divide_up(count, rows_each);
    float* const part = workspace<float>(cuda, parts * loss.vocabulary);
    launch(summed_loss_kernel<T>, static_cast<unsigned>(parts), sum_threads, 0, cuda, rows, count,
           rows_each, part);
    add_parts(cuda, parts, loss.vocabulary, part, loss.dbias);
    return true;
  }
  const auto start = [&](auto n) {
    launch(row_loss_kernel<n, T>, static_cast<unsigned>(count),
           threads_for(divide_up(loss.vocabulary, n), max_threads), 0, cuda, rows,
           std::int64_t{loss.dx != nullptr});
  };
  if (fours)
    start(std::integral_constant<int, 4>());
  else
    start(std::integral_constant<int, 1>());
  return false;
}

// The gradients of a chunk of rows from those of its logits.
template <class T>
void add_gradients(const Cuda& cuda, const SoftmaxLoss& loss, std::int64_t first,
                   std::int64_t count, const T* dlogits, std::int64_t stride, const ProductInput& x,
                   const ProductInput& table, bool with_bias) {
  const std::int64_t width = loss.width, vocabulary = loss.vocabulary;
  gemm(cuda, false, false, count, width, vocabulary, input_of(dlogits), stride, table, width, 0.0f,
       loss.dx + first * width, width);
  gemm(cuda, true, false, vocabulary, width, count, input_of(dlogits), stride, x, width,
       first == 0 ? loss.dtable_beta : 1.0f, loss.dtable, width);
  if (with_bias)
    add_columns(
        cuda, count, vocabulary,
        [=] __device__(std::int64_t r, std::int64_t i) {
          return as_float(dlogits[r * stride + i]);
        },
        loss.dbias);
}

}  // namespace

void softmax_loss(const Cuda& cuda, const SoftmaxLoss& loss) {
  const std::int64_t rows = loss.rows, width = loss.width, vocabulary = loss.vocabulary;
  const bool rounded = reads_rounded(cuda);
  const Plan plan(rows, width, vocabulary);
  NMT_CHECK(
      rounded == (loss.rounded_table != nullptr) && rounded == (loss.rounded_x != nullptr),
      "the loss needs rounded rows and a rounded table where, and only where, products read them");
  float* const logits = loss.scratch;
  RowLoss* const losses = reinterpret_cast<RowLoss*>(loss.scratch + plan.losses);
  const ProductInput table(loss.table, loss.rounded_table);
  for (std::int64_t first = 0; first < rows; first += plan.chunk) {
    const std::int64_t count = std::min(plan.chunk, rows - first);
    const ProductInput x(loss.x + first * width,
                         rounded ? loss.rounded_x + first * rounded_stride(width) : nullptr);
    const auto run = [&](auto* values, std::int64_t stride) {
      const bool has_bias = row_losses(cuda, loss, first, count, values, stride, losses);
      if (loss.dx)
        add_gradients(cuda, loss, first, count, values, stride, x, table, loss.dbias && !has_bias);
    };
    if (rounded && loss.dx) {
      auto* const values = reinterpret_cast<Bfloat16*>(logits);
      const std::int64_t stride = rounded_stride(vocabulary);
      gemm_rounded(cuda, true, count, vocabulary, width, x, table, values, stride);
      run(values, stride);
    } else {
      gemm(cuda, false, true, count, vocabulary, width, x, width, table, width, 0.0f, logits,
           plan.stride);
      run(logits, plan.stride);
    }
  }
  launch(add_losses_kernel, rows > 0 ? 1 : 0, 256, 0, cuda, rows, losses, loss.cross_entropy,
         loss.smoothed);
}

}  // namespace nmt::kernels
