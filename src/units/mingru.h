#pragma once

// minGRU (Feng et al., "Were RNNs All We Needed?", arXiv 2410.01201, section 3.1 and appendix B).
// Planes of xW: z, h. No recurrent product, and no gate reads the state.
// Gate: z, the input gate, starts at sigmoid(-X), X = 1.
//   z = sigmoid(xWz)
//   h = (1 - z) * h' + z * g(xWh),  g(x) = x + 0.5 for x >= 0, sigmoid(x) below

#include "units/step.h"

namespace nmt::units {

/// g, which is positive, monotonic and continuous.
template <class T>
NMT_HOST_DEVICE T positive(T x) {
  const T y = math::sigmoid<T>(x);
  return x < T(0) ? y : x + T(0.5);
}
template <class T>
NMT_HOST_DEVICE T positive_slope(T x) {
  const T y = math::sigmoid<T>(x);
  return x < T(0) ? sigmoid_slope(y) : T(1);
}

struct MinGru {
  static constexpr int inputs = 2, recurrents = 0, late = 0, vectors = 0, states = 1;
  static constexpr bool bias = true;
  static constexpr int linear_state = 0;
  static constexpr GateBias gate_biases[] = {{BiasOf::input, 0, -1, -1}};  // z; f = 1 - z
  static constexpr float gate_bias = 1;

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, MinGru>& step, T& input, T& forget) {
    input = math::sigmoid<T>(step.x[0]);
    forget = T(1) - input;
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, MinGru>& step, T (&next)[1]) {
    T z, f;
    gates(step, z, f);
    next[0] = f * step.s[0] + z * positive(step.x[1]);
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, MinGru>& step, const T (&dnext)[1],
                                       Step<T, MinGru>& d) {
    T z, f;
    gates(step, z, f);
    d.x[0] = dnext[0] * (positive(step.x[1]) - step.s[0]) * sigmoid_slope(z);
    d.x[1] = dnext[0] * z * positive_slope(step.x[1]);
    d.s[0] = dnext[0] * f;
  }
};

}  // namespace nmt::units
