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
// output table. The layout depends on the sizes alone, so every sum has one fixed order. Where
// products read rounded inputs: the table, the rows and the gradient of a chunk's logits, rounded.
struct Plan {
  std::int64_t chunk, stride, losses, table, rows_at, gradient, total;
  Plan(std::int64_t rows, std::int64_t width, std::int64_t vocabulary, bool rounded) {
    constexpr std::int64_t min_rows = 64, max_rows = 2048;
    stride = divide_up(vocabulary, 32) * 32;
    const std::int64_t fitting = std::clamp(4 * width, min_rows, max_rows);
    chunk = divide_up(rows, divide_up(std::max<std::int64_t>(rows, 1), fitting));
    losses = chunk * stride;
    const auto floats = [](std::int64_t elements) { return divide_up(elements, 8) * 4; };
    table = losses +
            divide_up(rows * static_cast<std::int64_t>(sizeof(RowLoss) / sizeof(float)), 4) * 4;
    rows_at = table + (rounded ? floats(vocabulary * rounded_stride(width)) : 0);
    gradient = rows_at + (rounded ? floats(rows * rounded_stride(width)) : 0);
    total = gradient + (rounded ? floats(chunk * rounded_stride(vocabulary)) : 0);
  }
};

// One block per row of logits. `gradient`: their gradients, scale (p - q), in rows at
// gradient_stride; it may be `logits`; null: none.
template <class T>
__global__ void row_loss_kernel(std::int64_t vocabulary, std::int64_t stride, const float* bias,
                                const std::int32_t* target, float smoothing, float scale,
                                double information, const float* logits, T* gradient,
                                std::int64_t gradient_stride, RowLoss* losses, Fault* fault) {
  const float* const x = logits + blockIdx.x * stride;
  T* const dx = gradient + blockIdx.x * gradient_stride;
  std::int32_t symbol = target[blockIdx.x];
  if (symbol == no_target) {
    if (threadIdx.x == 0) losses[blockIdx.x] = {0, 0};
    for (std::int64_t i = threadIdx.x; gradient && i < vocabulary; i += blockDim.x)
      assign(dx[i], 0.0f);
    return;
  }
  if (symbol < 0 || symbol >= vocabulary) {  // the same for the whole block
    if (threadIdx.x == 0) report(fault, symbol_outside_vocabulary, symbol, vocabulary);
    symbol = 0;
  }
  const double label = static_cast<double>(x[symbol] + (bias ? bias[symbol] : 0.0f));
  RunningSum running;
  float all = 0.0f;
  for (std::int64_t i = threadIdx.x; i < vocabulary; i += blockDim.x) {
    const float value = x[i] + (bias ? bias[i] : 0.0f);
    running.add(value);
    all += value;
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
  if (!gradient) return;
  __syncthreads();  // until every thread has read the label
  const float factor = scale / running.sum,
              rest = scale * smoothing / static_cast<float>(vocabulary);
  for (std::int64_t i = threadIdx.x; i < vocabulary; i += blockDim.x) {
    const float value = x[i] + (bias ? bias[i] : 0.0f);
    assign(dx[i], math::exp(value - running.top) * factor - rest -
                      (i == symbol ? scale * (1.0f - smoothing) : 0.0f));
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

std::int64_t softmax_loss_scratch(const Cuda& cuda, std::int64_t rows, std::int64_t width,
                                  std::int64_t vocabulary) {
  return Plan(rows, width, vocabulary, reads_rounded(cuda)).total;
}

namespace {

ProductInput input_of(const float* x) {
  return x;
}
ProductInput input_of(const Bfloat16* x) {
  return {nullptr, x};
}

// The gradients of a chunk of rows from those of its logits, `count` rows at `stride` of them.
template <class T>
void add_gradients(const Cuda& cuda, const SoftmaxLoss& loss, std::int64_t first,
                   std::int64_t count, const T* dlogits, std::int64_t stride, const ProductInput& x,
                   const ProductInput& table) {
  const std::int64_t width = loss.width, vocabulary = loss.vocabulary;
  gemm(cuda, false, false, count, width, vocabulary, input_of(dlogits), stride, table, width, 0.0f,
       loss.dx + first * width, width);
  gemm(cuda, true, false, vocabulary, width, count, input_of(dlogits), stride, x, width, 1.0f,
       loss.dtable, width);
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
  const Plan plan(rows, width, vocabulary, rounded);
  float* const logits = loss.scratch;
  RowLoss* const losses = reinterpret_cast<RowLoss*>(loss.scratch + plan.losses);
  const auto place = [&](std::int64_t at) {
    return rounded ? reinterpret_cast<Bfloat16*>(loss.scratch + at) : nullptr;
  };
  Bfloat16 *const rounded_table = place(plan.table), *const rounded_rows = place(plan.rows_at),
                  *const rounded_gradient = place(plan.gradient);
  if (rounded && rows > 0) {
    round_matrix(cuda, vocabulary, width, loss.table, rounded_table);
    round_matrix(cuda, rows, width, loss.x, rounded_rows);
  }
  const ProductInput table(loss.table, rounded_table);
  const double information = smoothing_information(static_cast<double>(loss.smoothing), vocabulary);
  for (std::int64_t first = 0; first < rows; first += plan.chunk) {
    const std::int64_t count = std::min(plan.chunk, rows - first), stride = plan.stride;
    const ProductInput x(loss.x + first * width,
                         rounded ? rounded_rows + first * rounded_stride(width) : nullptr);
    gemm(cuda, false, true, count, vocabulary, width, x, width, table, width, 0.0f, logits, stride);
    const auto row_losses = [&]<class T>(T* gradient, std::int64_t gradient_stride) {
      launch(row_loss_kernel<T>, static_cast<unsigned>(count), threads_for(vocabulary, max_threads),
             0, cuda, vocabulary, stride, loss.bias, loss.target + first, loss.smoothing,
             loss.scale, information, logits, gradient, gradient_stride, losses + first,
             state_of(cuda).device_fault);
    };
    if (!loss.dx) {
      row_losses(static_cast<float*>(nullptr), 0);
    } else if (rounded) {
      const std::int64_t to = rounded_stride(vocabulary);
      row_losses(rounded_gradient, to);
      add_gradients(cuda, loss, first, count, rounded_gradient, to, x, table);
    } else {
      row_losses(logits, stride);
      add_gradients(cuda, loss, first, count, logits, stride, x, table);
    }
  }
  launch(add_losses_kernel, rows > 0 ? 1 : 0, 256, 0, cuda, rows, losses, loss.cross_entropy,
         loss.smoothed);
}

}  // namespace nmt::kernels
