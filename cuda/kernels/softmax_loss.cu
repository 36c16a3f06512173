#include "cuda/kernels/assign.h"
#include "cuda/kernels/columns.h"
#include "cuda/kernels/reduce.h"
#include "cuda/kernels/running_sum.h"
#include "kernels/math.h"
#include "kernels/products/rounded.h"
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

// n logits from column i on, with their bias.
template <int n, class T>
__device__ __forceinline__ Floats<n> biased(const T* x, const float* bias, std::int64_t i) {
  Floats<n> value = read_all<n>(x + i);
  if (!bias) return value;
  const Floats<n> more = load<n>(bias + i);
#pragma unroll
  for (int e = 0; e < n; ++e) value[e] += more[e];
  return value;
}

// One block per row of logits, n columns at a time. Where `gradients`, they take the place of the
// logits: scale (p - q).
template <int n, class T>
__global__ void row_loss_kernel(std::int64_t vocabulary, std::int64_t stride, const float* bias,
                                const std::int32_t* target, float smoothing, float scale,
                                double information, T* logits, std::int64_t gradients,
                                RowLoss* losses, Fault* fault) {
  T* const x = logits + blockIdx.x * stride;
  const std::int64_t begin = std::int64_t{n} * threadIdx.x, step = std::int64_t{n} * blockDim.x;
  std::int32_t symbol = target[blockIdx.x];
  if (symbol == no_target) {
    if (threadIdx.x == 0) losses[blockIdx.x] = {0, 0};
    for (std::int64_t i = begin; gradients && i < vocabulary; i += step)
      assign_all<n>(x + i, Floats<n>{});
    return;
  }
  if (symbol < 0 || symbol >= vocabulary) {  // the same for the whole block
    if (threadIdx.x == 0) report(fault, symbol_outside_vocabulary, symbol, vocabulary);
    symbol = 0;
  }
  const double label = static_cast<double>(as_float(x[symbol]) + (bias ? bias[symbol] : 0.0f));
  RunningSum running;
  float all = 0.0f;
  for (std::int64_t i = begin; i < vocabulary; i += step) {
    const Floats<n> value = biased<n>(x, bias, i);
#pragma unroll
    for (int e = 0; e < n; ++e) {
      running.add(value[e]);
      all += value[e];
    }
  }
  running.join();
  all = block_sum(all);
  if (threadIdx.x == 0) {
    // -sum q x + log sum exp + sum q log q (Szegedy et al. 2016, section 7)
    const double log_sum = static_cast<double>(running.top) + log(static_cast<double>(running.sum));
    const double s = static_cast<double>(smoothing);
    losses[blockIdx.x] = {log_sum - label,
                          log_sum - (1.0 - s) * label -
                              s / static_cast<double>(vocabulary) * static_cast<double>(all) +
                              information};
  }
  if (!gradients) return;
  __syncthreads();  // until every thread has read the label
  const float factor = scale / running.sum,
              rest = scale * smoothing / static_cast<float>(vocabulary);
  for (std::int64_t i = begin; i < vocabulary; i += step) {
    Floats<n> value = biased<n>(x, bias, i);
#pragma unroll
    for (int e = 0; e < n; ++e)
      value[e] = math::exp(value[e] - running.top) * factor - rest -
                 (i + e == symbol ? scale * (1.0f - smoothing) : 0.0f);
    assign_all<n>(x + i, value);
  }
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

constexpr std::int64_t max_threads = 512;  // per block

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

// The losses of a chunk of rows, `count` rows at `stride` of logits. The gradients of the logits,
// if wanted, take their place.
template <class T>
void row_losses(const Cuda& cuda, const SoftmaxLoss& loss, std::int64_t first, std::int64_t count,
                T* logits, std::int64_t stride, RowLoss* losses) {
  const double information =
      smoothing_information(static_cast<double>(loss.smoothing), loss.vocabulary);
  const auto start = [&](auto n) {
    launch(row_loss_kernel<n, T>, static_cast<unsigned>(count),
           threads_for(divide_up(loss.vocabulary, n), max_threads), 0, cuda, loss.vocabulary,
           stride, loss.bias, loss.target + first, loss.smoothing, loss.scale, information, logits,
           std::int64_t{loss.dx != nullptr}, losses + first, state_of(cuda).device_fault);
  };
  if (stride % 4 == 0 && by_fours(loss.vocabulary, logits, loss.bias))
    start(std::integral_constant<int, 4>());
  else
    start(std::integral_constant<int, 1>());
}

// The gradients of a chunk of rows from those of its logits.
template <class T>
void add_gradients(const Cuda& cuda, const SoftmaxLoss& loss, std::int64_t first,
                   std::int64_t count, const T* dlogits, std::int64_t stride, const ProductInput& x,
                   const ProductInput& table) {
  const std::int64_t width = loss.width, vocabulary = loss.vocabulary;
  gemm(cuda, false, false, count, width, vocabulary, input_of(dlogits), stride, table, width, 0.0f,
       loss.dx + first * width, width);
  gemm(cuda, true, false, vocabulary, width, count, input_of(dlogits), stride, x, width,
       first == 0 ? loss.dtable_beta : 1.0f, loss.dtable, width);
  if (loss.dbias)
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
      row_losses(cuda, loss, first, count, values, stride, losses);
      if (loss.dx) add_gradients(cuda, loss, first, count, values, stride, x, table);
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
