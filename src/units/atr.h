#pragma once

// ATR: addition-subtraction twin-gated recurrent network (Zhang et al., EMNLP 2018, eq. 6-9).
// One plane of xW.
// Gates: i and f, both of p and q. X starts p, at X with forget-gate: paper and at -X with
// released; X = 0, so both gates start at 0.5.
//   p = h'U,  q = xW
//   i = sigmoid(p + q)             input-gate: own
//   i = 1 - f                      input-gate: complement
//   f = sigmoid(q - p)             forget-gate: released, as in the authors' implementation
//   f = sigmoid(p - q)             forget-gate: paper, as printed in eq. 8
//   h = i * q + f * h'

#include "units/step.h"

namespace nmt::units {

enum class ForgetGate { released, paper };
enum class InputGate { own, complement };

template <ForgetGate forget_gate, InputGate input_gate>
struct Atr {
  static constexpr int inputs = 1, recurrents = 1, late = 0, vectors = 0, states = 1;
  static constexpr bool bias = true;
  // A bias of p moves f only through p: released f falls with p, and i rises with it in every form.
  static constexpr float rises = forget_gate == ForgetGate::paper ? 1.0f : -1.0f;
  static constexpr GateBias gate_biases[] = {{BiasOf::state, 0, rises, rises}};
  static constexpr float gate_bias = 0;

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Atr>& step, T& i, T& f) {
    const T p = step.u[0], q = step.x[0];
    f = math::sigmoid<T>(forget_gate == ForgetGate::released ? q - p : p - q);     // eq. 8
    i = input_gate == InputGate::complement ? T(1) - f : math::sigmoid<T>(p + q);  // eq. 7
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Atr>& step, T (&next)[1]) {
    T i, f;
    gates(step, i, f);
    next[0] = i * step.x[0] + f * step.s[0];  // eq. 9
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Atr>& step, const T (&dnext)[1],
                                       Step<T, Atr>& d) {
    T i, f;
    gates(step, i, f);
    T df = dnext[0] * step.s[0], sum = T(0);  // sum: the gradient of p + q
    if constexpr (input_gate == InputGate::complement)
      df -= dnext[0] * step.x[0];
    else
      sum = dnext[0] * step.x[0] * sigmoid_slope(i);
    T difference = df * sigmoid_slope(f);  // the gradient of q - p
    if constexpr (forget_gate == ForgetGate::paper) difference = -difference;
    d.x[0] = dnext[0] * i + sum + difference;
    d.u[0] = sum - difference;
    d.s[0] = dnext[0] * f;
  }
};

}  // namespace nmt::units
