#pragma once

// SRN: simple recurrent network ("Dependent Bidirectional RNN with Extended-long Short-term
// Memory", 2018, eq. 1-2), a linear recurrence. Elman's network is the unit rnn.
// One plane of xW. No gates. U is a late matrix: its product reads c', not h'. States: h, c. h is
// computed from c, so an initial state is c.
//   c = xW + c'U
//   h = tanh(c)

#include "units/step.h"

namespace nmt::units {

struct Srn {
  static constexpr int inputs = 1, recurrents = 0, late = 1, vectors = 0, states = 2;
  static constexpr bool bias = true;
  static constexpr Activation initial_output = Activation::tanh;

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Srn>& step, T (&next)[2]) {
    next[1] = step.x[0] + step.late[0];  // eq. 1
    next[0] = math::tanh<T>(next[1]);    // eq. 2
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Srn>& step, const T (&dnext)[2],
                                       Step<T, Srn>& d) {
    // 1 - tanh^2 as a product: c is unbounded, and the difference cancels where tanh saturates.
    const T c = step.x[0] + step.late[0];
    const T slope = T(4) * math::sigmoid<T>(T(2) * c) * math::sigmoid<T>(T(-2) * c);
    d.x[0] = d.late[0] = dnext[1] + dnext[0] * slope;
    d.s[0] = d.s[1] = T(0);
  }

  template <class T>
  NMT_HOST_DEVICE static T late_value(const Step<T, Srn>& step) {
    return step.s[1];
  }

  template <class T>
  NMT_HOST_DEVICE static void late_backward(const Step<T, Srn>&, T dlate, Step<T, Srn>& d) {
    d.s[1] += dlate;
  }
};

}  // namespace nmt::units
