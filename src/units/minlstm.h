#pragma once

// minLSTM (Feng et al., "Were RNNs All We Needed?", arXiv 2410.01201, section 3.2 and appendix B).
// Planes of xW: f, i, h. No recurrent product, and no gate reads the state.
// Gates: f starts at sigmoid(X), i at sigmoid(-X/2), X = 1.
//   f = sigmoid(xWf), i = sigmoid(xWi)
//   F = f / (f + i), I = i / (f + i)
//   h = F * h' + I * g(xWh),  g as in minGRU

#include "units/mingru.h"

namespace nmt::units {

struct MinLstm {
  static constexpr int inputs = 3, recurrents = 0, late = 0, vectors = 0, states = 1;
  static constexpr bool bias = true;
  static constexpr int linear_state = 0;
  static constexpr GateBias gate_biases[] = {{BiasOf::input, 0, 1, 1},        // f
                                             {BiasOf::input, 1, -0.5f, -1}};  // i
  static constexpr float gate_bias = 1;

  template <class T>
  struct At {
    T f, i, share;  // share = 1 / (f + i)
  };
  template <class T>
  NMT_HOST_DEVICE static At<T> at(const Step<T, MinLstm>& step) {
    const T f = math::sigmoid<T>(step.x[0]), i = math::sigmoid<T>(step.x[1]);
    return {f, i, T(1) / (f + i + T(1e-30))};  // the constant: both gates may round to 0
  }

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, MinLstm>& step, T& input, T& forget) {
    const At<T> a = at(step);
    input = a.i * a.share;
    forget = a.f * a.share;
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, MinLstm>& step, T (&next)[1]) {
    T input, forget;
    gates(step, input, forget);
    next[0] = forget * step.s[0] + input * positive(step.x[2]);
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, MinLstm>& step, const T (&dnext)[1],
                                       Step<T, MinLstm>& d) {
    const At<T> a = at(step);
    const T input = a.i * a.share, forget = a.f * a.share;
    // h = (f h' + i g) / (f + i)
    const T g = positive(step.x[2]), h = forget * step.s[0] + input * g;
    const T scale = dnext[0] * a.share;
    d.x[0] = scale * (step.s[0] - h) * sigmoid_slope(a.f);
    d.x[1] = scale * (g - h) * sigmoid_slope(a.i);
    d.x[2] = dnext[0] * input * positive_slope(step.x[2]);
    d.s[0] = dnext[0] * forget;
  }
};

}  // namespace nmt::units
