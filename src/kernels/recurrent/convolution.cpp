#include "kernels/recurrent/convolution.h"

#include "core/threads/thread_pool.h"

#include <algorithm>

namespace nmt::kernels {
namespace {

// Rows of [T,B] and columns that a thread takes at least.
constexpr std::int64_t rows_grain = 16, columns_grain = 64;

}  // namespace

void convolution_forward(const Cpu& cpu, const Convolution& a, float* y) {
  cpu.pool->parallel_for(a.steps * a.batch, rows_grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* to = y + row * a.width;
      std::copy_n(a.bias, a.width, to);
      for (std::int64_t k = 0; k < a.taps; ++k) {
        const float *from = a.input(row / a.batch, row % a.batch, k), *w = a.weight + k * a.width;
        if (!from) continue;
#pragma omp simd
        for (std::int64_t j = 0; j < a.width; ++j) to[j] += w[j] * from[j];
      }
    }
  });
}

// Threads split columns and add rows in order, so the sums do not depend on the number of threads.
void convolution_backward(const Cpu& cpu, const Convolution& a, const float* dy, float* dx,
                          float* dweight, float* dbias) {
  cpu.pool->parallel_for(a.width, columns_grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = 0; row < a.steps * a.batch; ++row) {
      const std::int64_t t = row / a.batch, b = row % a.batch;
      const float* from = dy + row * a.width;
#pragma omp simd
      for (std::int64_t j = begin; j < end; ++j) dbias[j] += from[j];
      for (std::int64_t k = 0; k < a.taps; ++k) {
        if (const float* x = a.input(t, b, k)) {
          float* dw = dweight + k * a.width;
#pragma omp simd
          for (std::int64_t j = begin; j < end; ++j) dw[j] += from[j] * x[j];
        }
        const float* d = dx ? a.output(dy, t, b, k) : nullptr;
        if (!d) continue;
        const float* w = a.weight + k * a.width;
        float* to = dx + row * a.width;
#pragma omp simd
        for (std::int64_t j = begin; j < end; ++j) to[j] += w[j] * d[j];
      }
    }
  });
}

void convolution_last(const Cpu&, const Convolution& a, float* last) {
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t k = 1; k < a.taps; ++k) {
      float* to = last + (b * (a.taps - 1) + k - 1) * a.width;
      if (const float* from = a.input(a.steps, b, k))
        std::copy_n(from, a.width, to);
      else
        std::fill_n(to, a.width, 0.0f);
    }
}

}  // namespace nmt::kernels
