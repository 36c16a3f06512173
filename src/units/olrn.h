#pragma once

// oLRN: LRN with an output gate (Zhang & Sennrich, ACL 2019, eq. 11-13).
// Planes of xW: q, k, v, o. No recurrent product.
// Gates: f starts at sigmoid(X), i at sigmoid(-X/2); X = 0, so both at 0.5. The output gate o
// starts at 0.5.
//   i = sigmoid(k + h'),  f = sigmoid(q - h')
//   c = i * v + f * h'
//   o = sigmoid(xWo - c)
//   h = o * c

#include "units/lrn.h"

namespace nmt::units {

struct Olrn {
  static constexpr int inputs = 4, recurrents = 0, late = 0, vectors = 0, states = 1;
  static constexpr bool bias = false;
  static constexpr GateBias gate_biases[] = {{BiasOf::input, 0, 1, 1},        // f
                                             {BiasOf::input, 1, -0.5f, -1}};  // i
  static constexpr float gate_bias = 0;

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Olrn>& step, T& input, T& forget) {
    lrn_gates(step.x[0], step.x[1], step.s[0], input, forget);
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Olrn>& step, T (&next)[1]) {
    T i, f;
    gates(step, i, f);
    const T c = i * step.x[2] + f * step.s[0];      // eq. 11
    next[0] = math::sigmoid<T>(step.x[3] - c) * c;  // eq. 12, 13
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Olrn>& step, const T (&dnext)[1],
                                       Step<T, Olrn>& d) {
    T i, f;
    gates(step, i, f);
    const T v = step.x[2], h = step.s[0];
    const T c = i * v + f * h;
    const T o = math::sigmoid<T>(step.x[3] - c);
    const T d_o = dnext[0] * c * sigmoid_slope(o);
    const T dc = dnext[0] * o - d_o;
    const T dk = dc * v * sigmoid_slope(i), dq = dc * h * sigmoid_slope(f);
    d.x[0] = dq;
    d.x[1] = dk;
    d.x[2] = dc * i;
    d.x[3] = d_o;
    d.s[0] = dc * f + dk - dq;
  }
};

}  // namespace nmt::units
