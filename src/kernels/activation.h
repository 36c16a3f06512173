#pragma once

#include "core/host_device.h"
#include "kernels/handles.h"
#include "kernels/math.h"

#include <cstdint>

namespace nmt::kernels {

/// relu  max(x, 0)
/// silu  x s(x), s the logistic function                       (Elfwing et al. 2018, eq. 5)
/// gelu  x s(2 sqrt(2/pi) (x + 0.044715 x^3)), the usual       (Hendrycks & Gimpel 2016, section 2)
///       approximation of x times the normal distribution
enum class Activation { relu, silu, gelu };

/// The value of an activation at x.
template <Activation kind, class T>
NMT_HOST_DEVICE T activate(T x) {
  if constexpr (kind == Activation::relu) return x < T(0) ? T(0) : x;
  if constexpr (kind == Activation::silu) return x * math::sigmoid(x);
  if constexpr (kind == Activation::gelu)
    return x * math::sigmoid(T(1.5957691216057308) * (x + T(0.044715) * x * x * x));
}

/// The derivative of an activation at x.
template <Activation kind, class T>
NMT_HOST_DEVICE T activation_slope(T x) {
  if constexpr (kind == Activation::relu) return x > T(0) ? T(1) : T(0);
  if constexpr (kind == Activation::silu) {
    const T s = math::sigmoid(x);
    return s + x * s * (T(1) - s);
  }
  if constexpr (kind == Activation::gelu) {
    constexpr T factor = T(1.5957691216057308);
    const T s = math::sigmoid(factor * (x + T(0.044715) * x * x * x));
    return s + x * s * (T(1) - s) * factor * (T(1) + T(3 * 0.044715) * x * x);
  }
}

/// Calls body with an activation as a compile-time constant.
template <class Body>
void with_activation(Activation kind, Body&& body) {
  switch (kind) {
    case Activation::relu: return body.template operator()<Activation::relu>();
    case Activation::silu: return body.template operator()<Activation::silu>();
    case Activation::gelu: return body.template operator()<Activation::gelu>();
  }
}

/// y = activate(gate) * x, or activate(gate) where x is null; y may be gate or x.
NMT_KERNEL(gate_forward, Activation activation, std::int64_t n, const float* gate, const float* x,
           float* y);

/// Gradients of gate_forward(). dx is null where x is; `adds_*`: adds to the gradient instead of
/// overwriting it.
struct GateGradient {
  const float* dy = nullptr;
  float* dgate = nullptr;
  float* dx = nullptr;
  bool adds_gate = false, adds_x = false;
};
NMT_KERNEL(gate_backward, Activation activation, std::int64_t n, const float* gate, const float* x,
           const GateGradient& gradient);

}  // namespace nmt::kernels
