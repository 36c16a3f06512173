#pragma once

// eLRN: LRN whose gates read only the state (Zhang & Sennrich, ACL 2019, eq. 15).
// One plane of xW: v. Gate: f reads no bias and starts at 0.5.
//   f = sigmoid(-h'),  i = 1 - f
//   h = g(i * v + f * h'),  g = tanh or the identity

#include "units/step.h"

namespace nmt::units {

template <Activation g>
struct Elrn {
  static constexpr int inputs = 1, recurrents = 0, late = 0, vectors = 0, states = 1;
  static constexpr bool bias = false;

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Elrn>& step, T& input, T& forget) {
    forget = math::sigmoid<T>(-step.s[0]);
    input = T(1) - forget;
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Elrn>& step, T (&next)[1]) {
    T i, f;
    gates(step, i, f);
    next[0] = activate<g>(i * step.x[0] + f * step.s[0]);  // eq. 15
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Elrn>& step, const T (&dnext)[1],
                                       Step<T, Elrn>& d) {
    T i, f;
    gates(step, i, f);
    const T v = step.x[0], h = step.s[0];
    const T dc = dnext[0] * activation_slope<g>(i * v + f * h);
    d.x[0] = dc * i;
    d.s[0] = dc * f - dc * (h - v) * sigmoid_slope(f);
  }
};

}  // namespace nmt::units
