#include "cuda/kernels/elementwise.h"
#include "kernels/activation.h"

namespace nmt::kernels {

using namespace nmt::cuda;

namespace {

template <Activation kind>
void gate(const Cuda& cuda, std::int64_t n, const float* gates, const float* x, float* y) {
  each(cuda, n, [=] __device__(std::int64_t i) {
    const float value = activate<kind>(gates[i]);
    y[i] = x ? value * x[i] : value;
  });
}

template <Activation kind>
void gate_back(const Cuda& cuda, std::int64_t n, const float* gates, const float* x,
               const GateGradient& g) {
  each(cuda, n, [=] __device__(std::int64_t i) {
    const float dgate = g.dy[i] * (x ? x[i] : 1.0f) * activation_slope<kind>(gates[i]);
    g.dgate[i] = g.adds_gate ? g.dgate[i] + dgate : dgate;
    if (!x) return;
    const float dx = g.dy[i] * activate<kind>(gates[i]);
    g.dx[i] = g.adds_x ? g.dx[i] + dx : dx;
  });
}

}  // namespace

void gate_forward(const Cuda& cuda, Activation activation, std::int64_t n, const float* gates,
                  const float* x, float* y) {
  with_activation(activation, [&]<Activation kind>() { gate<kind>(cuda, n, gates, x, y); });
}

void gate_backward(const Cuda& cuda, Activation activation, std::int64_t n, const float* gates,
                   const float* x, const GateGradient& g) {
  with_activation(activation, [&]<Activation kind>() { gate_back<kind>(cuda, n, gates, x, g); });
}

}  // namespace nmt::kernels
