#pragma once

// HGRN: hierarchically gated recurrent unit (Qin et al., "Hierarchically Gated Recurrent Neural
// Network for Sequence Modeling", NeurIPS 2023, sections 3.2-3.4), the authors' form with real
// states, without the output gate, which the gate branch of blocks provides.
// Planes of xW: f, c. Per-channel vector: G. No recurrent product, and no gate reads the state.
// Gate: f starts at g + (1 - g) * sigmoid(X), X = 1, with the start of G below.
//   g = sigmoid(G), the lower bound of f
//   f = g + (1 - g) * sigmoid(xWf + bf)
//   h = f * h' + (1 - f) * silu(xWc + bc),  silu(x) = x sigmoid(x)
// In the paper the bounds of all layers are a cumulative softmax over the layers, which starts at
// k/L in layer k (from 0) of L. Here each layer trains a G of its own, which starts at that bound.

#include "units/step.h"

#include <algorithm>
#include <cmath>

namespace nmt::units {

struct Hgrn {
  static constexpr int inputs = 2, recurrents = 0, late = 0, vectors = 1, states = 1;
  static constexpr bool bias = true;
  static constexpr int linear_state = 0;
  static constexpr GateBias gate_biases[] = {{BiasOf::input, 0, 1, 1}};  // f
  static constexpr float gate_bias = 1;

  /// G of the bound k/L. The bound 0 of the first layer is 0.01, so that it can be trained.
  static double vector_start(int, double, LayerIndex place) {
    const double bound = std::max(0.01, static_cast<double>(place.layer) / place.layers);
    return std::log(bound / (1 - bound));
  }

  template <class T>
  struct At {
    T g, s, forget, input;  // s = sigmoid(xWf + bf)
  };
  template <class T>
  NMT_HOST_DEVICE static At<T> at(const Step<T, Hgrn>& step) {
    const T g = math::sigmoid<T>(step.v[0]), s = math::sigmoid<T>(step.x[0]);
    return {g, s, g + (T(1) - g) * s, (T(1) - g) * (T(1) - s)};
  }

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Hgrn>& step, T& input, T& forget) {
    const At<T> now = at(step);
    input = now.input;
    forget = now.forget;
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Hgrn>& step, T (&next)[1]) {
    const At<T> now = at(step);
    next[0] = now.forget * step.s[0] + now.input * step.x[1] * math::sigmoid<T>(step.x[1]);
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Hgrn>& step, const T (&dnext)[1],
                                       Step<T, Hgrn>& d) {
    const At<T> now = at(step);
    const T q = math::sigmoid<T>(step.x[1]), c = step.x[1] * q;
    const T df = dnext[0] * (step.s[0] - c);
    d.x[0] = df * (T(1) - now.g) * sigmoid_slope(now.s);
    d.x[1] = dnext[0] * now.input * (q + c * (T(1) - q));
    d.v[0] = df * (T(1) - now.s) * sigmoid_slope(now.g);
    d.s[0] = dnext[0] * now.forget;
  }
};

}  // namespace nmt::units
