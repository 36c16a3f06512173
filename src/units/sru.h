#pragma once

// SRU: simple recurrent unit (Lei et al., EMNLP 2018, in the form of the LRN paper, footnote 3).
// Planes of xW: f, c, r, h. Per-channel vectors: vf, vr. States: h, c; the next step reads only c.
// No recurrent product.
// Gates: f starts at sigmoid(X), X = 1. The output gate r, which weights c in h, starts at 0.5.
// vf and vr start at 0.
//   f = sigmoid(xWf + vf * c')
//   c = f * c' + (1 - f) * xWc
//   r = sigmoid(xWr + vr * c')
//   h = r * c + (1 - r) * xWh

#include "units/step.h"

namespace nmt::units {

struct Sru {
  static constexpr int inputs = 4, recurrents = 0, late = 0, vectors = 2, states = 2;
  static constexpr bool bias = false;
  static constexpr GateBias gate_biases[] = {{BiasOf::input, 0, 1, 1}};  // f
  static constexpr float gate_bias = 1;

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Sru>& step, T& input, T& forget) {
    forget = math::sigmoid<T>(step.x[0] + step.v[0] * step.s[1]);
    input = T(1) - forget;
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Sru>& step, T (&next)[2]) {
    T i, f;
    gates(step, i, f);
    const T r = math::sigmoid<T>(step.x[2] + step.v[1] * step.s[1]);
    next[1] = f * step.s[1] + i * step.x[1];
    next[0] = r * next[1] + (T(1) - r) * step.x[3];
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Sru>& step, const T (&dnext)[2],
                                       Step<T, Sru>& d) {
    T i, f;
    gates(step, i, f);
    const T before = step.s[1], r = math::sigmoid<T>(step.x[2] + step.v[1] * before);
    const T c = f * before + i * step.x[1];
    const T dc = dnext[1] + dnext[0] * r;
    const T dr = dnext[0] * (c - step.x[3]) * sigmoid_slope(r),
            df = dc * (before - step.x[1]) * sigmoid_slope(f);
    d.x[0] = df;
    d.x[1] = dc * i;
    d.x[2] = dr;
    d.x[3] = dnext[0] * (T(1) - r);
    d.v[0] = df * before;
    d.v[1] = dr * before;
    d.s[0] = T(0);
    d.s[1] = dc * f + df * step.v[0] + dr * step.v[1];
  }
};

}  // namespace nmt::units
