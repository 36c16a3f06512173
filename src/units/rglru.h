#pragma once

// RG-LRU: real-gated linear recurrent unit (De et al., "Griffin: Mixing Gated Linear Recurrences
// with Local Attention for Efficient Language Models", arXiv 2402.19427, section 2.4, eq. 1-4).
// Planes of xW: r, i, u. Per-channel vector: L. No recurrent product, and no gate reads the state.
// Gates: r, the recurrence gate, and i, the input gate, start at 0.5. L starts so that a is uniform
// in [0.9, 0.999] where r = 1.
//   r = sigmoid(xWr + br), i = sigmoid(xWi + bi)
//   a = exp(-8 softplus(L) r)
//   h = a * h' + sqrt(1 - a^2) * (i * xWu)

#include "units/step.h"

#include <cmath>

namespace nmt::units {

struct Rglru {
  static constexpr int inputs = 3, recurrents = 0, late = 0, vectors = 1, states = 1;
  static constexpr bool bias = true;
  static constexpr int linear_state = 0;

  /// L such that a^(1/r), the decay of a fully open gate, is uniform in [0.9, 0.999].
  static double vector_start(int, double uniform) {
    return std::log(std::expm1(-std::log(0.9 + 0.099 * uniform) / 8));
  }

  template <class T>
  struct At {
    T r, i, a, b, slope;  // b = sqrt(1 - a^2), slope = -db/da
  };
  template <class T>
  NMT_HOST_DEVICE static At<T> at(const Step<T, Rglru>& step) {
    At<T> at;
    at.r = math::sigmoid<T>(step.x[0]);
    at.i = math::sigmoid<T>(step.x[1]);
    at.a = math::exp<T>(T(-8) * math::softplus(step.v[0]) * at.r);
    // The bound keeps the slope below 1000, as the authors' code does.
    const T rest = (T(1) - at.a) * (T(1) + at.a), least = T(1e-6);
    at.b = math::sqrt(rest < least ? least : rest);
    at.slope = rest < least ? T(0) : at.a / at.b;
    return at;
  }

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Rglru>& step, T& input, T& forget) {
    const At<T> now = at(step);
    input = now.b * now.i;
    forget = now.a;
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Rglru>& step, T (&next)[1]) {
    T input, forget;
    gates(step, input, forget);
    next[0] = forget * step.s[0] + input * step.x[2];
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Rglru>& step, const T (&dnext)[1],
                                       Step<T, Rglru>& d) {
    const At<T> now = at(step);
    const T u = step.x[2], dh = dnext[0];
    const T scaled = dh * (step.s[0] - now.i * u * now.slope) * now.a * T(-8);  // of softplus(L) r
    d.x[0] = scaled * math::softplus(step.v[0]) * sigmoid_slope(now.r);
    d.x[1] = dh * now.b * u * sigmoid_slope(now.i);
    d.x[2] = dh * now.b * now.i;
    d.v[0] = scaled * now.r * math::sigmoid<T>(step.v[0]);
    d.s[0] = dh * now.a;
  }
};

}  // namespace nmt::units
