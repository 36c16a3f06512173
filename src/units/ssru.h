#pragma once

// SSRU: simpler simple recurrent unit (Kim et al., "From Research to Production and Back:
// Ludicrously Fast Neural Machine Translation", WNGT 2019).
// Planes of xW: f, c. Per-channel vector: bf. States: h, c; the next step reads only c. No
// recurrent product. Gate: f starts at sigmoid(X), X = 1; X is the start of bf.
//   f = sigmoid(xWf + bf)
//   c = f * c' + (1 - f) * xWc
//   h = relu(c)

#include "units/step.h"

namespace nmt::units {

struct Ssru {
  static constexpr int inputs = 2, recurrents = 0, late = 0, vectors = 1, states = 2;
  static constexpr bool bias = false;  // the only bias of the paper is bf
  static constexpr int linear_state = 1;
  static constexpr GateBias gate_biases[] = {{BiasOf::vector, 0, 1, 1}};  // bf
  static constexpr float gate_bias = 1;

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Ssru>& step, T& input, T& forget) {
    forget = math::sigmoid<T>(step.x[0] + step.v[0]);
    input = T(1) - forget;
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Ssru>& step, T (&next)[2]) {
    T i, f;
    gates(step, i, f);
    next[1] = f * step.s[1] + i * step.x[1];
    next[0] = next[1] < T(0) ? T(0) : next[1];  // NaN propagates
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Ssru>& step, const T (&dnext)[2],
                                       Step<T, Ssru>& d) {
    T i, f;
    gates(step, i, f);
    const T c = f * step.s[1] + i * step.x[1];
    const T dc = dnext[1] + (c > T(0) ? dnext[0] : T(0));
    d.x[0] = d.v[0] = dc * (step.s[1] - step.x[1]) * sigmoid_slope(f);
    d.x[1] = dc * i;
    d.s[0] = T(0);
    d.s[1] = dc * f;
  }
};

}  // namespace nmt::units
