#include "kernels/activation.h"

#include "core/threads/thread_pool.h"

#include <algorithm>

namespace nmt::kernels {
namespace {

constexpr std::int64_t grain = 4096;

}  // namespace

void gate_forward(const Cpu& cpu, Activation activation, std::int64_t n, const float* gate,
                  const float* x, float* y) {
  with_activation(activation, [&]<Activation kind>() {
    cpu.pool->parallel_for(n, grain, [=](std::int64_t begin, std::int64_t end) {
      if (x) {
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) y[i] = activate<kind>(gate[i]) * x[i];
      } else {
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) y[i] = activate<kind>(gate[i]);
      }
    });
  });
}

void gate_backward(const Cpu& cpu, Activation activation, std::int64_t n, const float* gate,
                   const float* x, const GateGradient& g) {
  with_activation(activation, [&]<Activation kind>() {
    cpu.pool->parallel_for(n, grain, [=](std::int64_t begin, std::int64_t end) {
      if (!g.adds_gate) std::fill(g.dgate + begin, g.dgate + end, 0.0f);
      if (!x) {
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i)
          g.dgate[i] += g.dy[i] * activation_slope<kind>(gate[i]);
        return;
      }
      if (!g.adds_x) std::fill(g.dx + begin, g.dx + end, 0.0f);
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        g.dgate[i] += g.dy[i] * x[i] * activation_slope<kind>(gate[i]);
        g.dx[i] += g.dy[i] * activate<kind>(gate[i]);
      }
    });
  });
}

}  // namespace nmt::kernels
