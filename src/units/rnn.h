#pragma once

// RNN: the network of Elman ("Finding Structure in Time", 1990).
// One plane of xW. No gates.
//   h = tanh(xW + h'U)

#include "units/step.h"

namespace nmt::units {

struct Rnn {
  static constexpr int inputs = 1, recurrents = 1, late = 0, vectors = 0, states = 1;
  static constexpr bool bias = true;

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Rnn>& step, T (&next)[1]) {
    next[0] = math::tanh<T>(step.x[0] + step.u[0]);
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Rnn>& step, const T (&dnext)[1],
                                       Step<T, Rnn>& d) {
    d.x[0] = d.u[0] = dnext[0] * tanh_slope(math::tanh<T>(step.x[0] + step.u[0]));
    d.s[0] = T(0);
  }
};

}  // namespace nmt::units
