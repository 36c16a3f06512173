#pragma once

// RAN: recurrent additive network (Lee et al. 2017, eq. 1).
// Planes of xW: k, i, f; of h'U: i, f. States: h, c. h is computed from c, so an initial state is
// c.
// Gates: f starts at sigmoid(X), i at sigmoid(-X/2); X = 0, so both at 0.5.
//   k = xWk
//   i = sigmoid(xWi + h'Ui),  f = sigmoid(xWf + h'Uf)
//   c = i * k + f * c'
//   h = g(c),  g = tanh or the identity

#include "units/step.h"

namespace nmt::units {

template <Activation g>
struct Ran {
  static constexpr int inputs = 3, recurrents = 2, late = 0, vectors = 0, states = 2;
  static constexpr bool bias = true;
  static constexpr GateBias gate_biases[] = {{BiasOf::state, 1, 1, 1},        // f
                                             {BiasOf::state, 0, -0.5f, -1}};  // i
  static constexpr float gate_bias = 0;
  static constexpr Activation initial_output = g;

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Ran>& step, T& input, T& forget) {
    input = math::sigmoid<T>(step.x[1] + step.u[0]);
    forget = math::sigmoid<T>(step.x[2] + step.u[1]);
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Ran>& step, T (&next)[2]) {
    T i, f;
    gates(step, i, f);
    next[1] = i * step.x[0] + f * step.s[1];
    next[0] = activate<g>(next[1]);
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Ran>& step, const T (&dnext)[2],
                                       Step<T, Ran>& d) {
    T i, f;
    gates(step, i, f);
    const T dc = dnext[1] + dnext[0] * activation_slope<g>(i * step.x[0] + f * step.s[1]);
    d.x[0] = dc * i;
    d.x[1] = d.u[0] = dc * step.x[0] * sigmoid_slope(i);
    d.x[2] = d.u[1] = dc * step.s[1] * sigmoid_slope(f);
    d.s[0] = T(0);
    d.s[1] = dc * f;
  }
};

}  // namespace nmt::units
