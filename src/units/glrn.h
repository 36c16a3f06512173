#pragma once

// gLRN: LRN whose input gate is the complement of the forget gate (Zhang & Sennrich, ACL 2019, eq.
// 14).
// Planes of xW: q, v. Gate: f starts at sigmoid(X); X = 2, usual_gate_bias.
//   f = sigmoid(q - h'),  i = 1 - f
//   h = g(i * v + f * h'),  g = tanh or the identity

#include "units/step.h"

namespace nmt::units {

template <Activation g>
struct Glrn {
  static constexpr int inputs = 2, recurrents = 0, late = 0, vectors = 0, states = 1;
  static constexpr bool bias = false;
  static constexpr GateBias gate_biases[] = {{BiasOf::input, 0, 1, 1}};  // f; i = 1 - f

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Glrn>& step, T& input, T& forget) {
    forget = math::sigmoid<T>(step.x[0] - step.s[0]);
    input = T(1) - forget;
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Glrn>& step, T (&next)[1]) {
    T i, f;
    gates(step, i, f);
    next[0] = activate<g>(i * step.x[1] + f * step.s[0]);  // eq. 14
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Glrn>& step, const T (&dnext)[1],
                                       Step<T, Glrn>& d) {
    T i, f;
    gates(step, i, f);
    const T v = step.x[1], h = step.s[0];
    const T dc = dnext[0] * activation_slope<g>(i * v + f * h);
    const T dq = dc * (h - v) * sigmoid_slope(f);
    d.x[0] = dq;
    d.x[1] = dc * i;
    d.s[0] = dc * f - dq;
  }
};

}  // namespace nmt::units
