#pragma once

// f-pooling of QRNN with filters of width 1 (Bradbury et al., "Quasi-Recurrent Neural Networks",
// ICLR 2017, eq. 3). Planes of xW: z, f. State: h. No product with the state.
//   f = sigmoid(xWf)
//   h = f * h' + (1 - f) * tanh(xWz)

#include "units/step.h"

namespace nmt::units {

struct Qrnn {
  static constexpr int inputs = 2, recurrents = 0, late = 0, vectors = 0, states = 1;
  static constexpr bool bias = true;
  static constexpr GateBias gate_biases[] = {{BiasOf::input, 1, 1, 1}};  // f

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Qrnn>& step, T& input, T& forget) {
    forget = math::sigmoid<T>(step.x[1]);
    input = T(1) - forget;
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Qrnn>& step, T (&next)[1]) {
    T i, f;
    gates(step, i, f);
    next[0] = f * step.s[0] + i * math::tanh<T>(step.x[0]);
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Qrnn>& step, const T (&dnext)[1],
                                       Step<T, Qrnn>& d) {
    T i, f;
    gates(step, i, f);
    const T z = math::tanh<T>(step.x[0]);
    d.x[0] = dnext[0] * i * tanh_slope(z);
    d.x[1] = dnext[0] * (step.s[0] - z) * sigmoid_slope(f);
    d.s[0] = dnext[0] * f;
  }
};

}  // namespace nmt::units
