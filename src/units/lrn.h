#pragma once

// LRN: lightweight recurrent network (Zhang & Sennrich, ACL 2019, eq. 1-4).
// Planes of xW: q, k, v. No recurrent product.
// Gates: f starts at sigmoid(X), i at sigmoid(-X/2); X = 2, usual_gate_bias.
//   i = sigmoid(k + h')
//   f = sigmoid(q - h')
//   h = g(i * v + f * h'),  g = tanh or the identity

#include "units/step.h"

namespace nmt::units {

/// The gates of LRN and oLRN.
template <class T>
NMT_HOST_DEVICE void lrn_gates(T q, T k, T h, T& input, T& forget) {
  input = math::sigmoid<T>(k + h);   // eq. 2
  forget = math::sigmoid<T>(q - h);  // eq. 3
}

template <Activation g>
struct Lrn {
  static constexpr int inputs = 3, recurrents = 0, late = 0, vectors = 0, states = 1;
  static constexpr bool bias = false;
  static constexpr GateBias gate_biases[] = {{BiasOf::input, 0, 1, 1},        // f
                                             {BiasOf::input, 1, -0.5f, -1}};  // i

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Lrn>& step, T& input, T& forget) {
    lrn_gates(step.x[0], step.x[1], step.s[0], input, forget);
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Lrn>& step, T (&next)[1]) {
    T i, f;
    gates(step, i, f);
    next[0] = activate<g>(i * step.x[2] + f * step.s[0]);  // eq. 4
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Lrn>& step, const T (&dnext)[1],
                                       Step<T, Lrn>& d) {
    T i, f;
    gates(step, i, f);
    const T v = step.x[2], h = step.s[0];
    const T dc = dnext[0] * activation_slope<g>(i * v + f * h);
    const T dk = dc * v * sigmoid_slope(i), dq = dc * h * sigmoid_slope(f);
    d.x[0] = dq;
    d.x[1] = dk;
    d.x[2] = dc * i;
    d.s[0] = dc * f + dk - dq;
  }
};

}  // namespace nmt::units
