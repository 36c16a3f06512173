#pragma once

// minGRU (Feng et al., Were RNNs All We Needed?, 2024). Planes of xW: z, h. State: h. No product
// with the state.
//   z = sigmoid(xWz)
//   h = (1 - z) * h' + z * xWh

#include "units/step.h"

namespace nmt::units {

struct MinGru {
  static constexpr int inputs = 2, recurrents = 0, late = 0, vectors = 0, states = 1;
  static constexpr bool bias = true;
  static constexpr GateBias gate_biases[] = {{BiasOf::input, 0, -1, -1}};  // z lets the input in

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, MinGru>& step, T& input, T& forget) {
    input = math::sigmoid<T>(step.x[0]);
    forget = T(1) - input;
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, MinGru>& step, T (&next)[1]) {
    T z, keep;
    gates(step, z, keep);
    next[0] = keep * step.s[0] + z * step.x[1];
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, MinGru>& step, const T (&dnext)[1],
                                       Step<T, MinGru>& d) {
    T z, keep;
    gates(step, z, keep);
    d.x[0] = dnext[0] * (step.x[1] - step.s[0]) * sigmoid_slope(z);
    d.x[1] = dnext[0] * z;
    d.s[0] = dnext[0] * keep;
  }
};

}  // namespace nmt::units
