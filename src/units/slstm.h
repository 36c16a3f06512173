#pragma once

// sLSTM: LSTM with exponential input gate and normalizer (Beck et al., "xLSTM: Extended Long
// Short-Term Memory", arXiv 2405.04517, section 2.2, eq. 8-17), with the sigmoid forget gate.
// Planes of xW and h'U: i, f, z, o. The heads are the option `groups`.
// Gates: sigmoid(f) starts at sigmoid(X), X = 1; the input gate e^i at 1 (a constant factor of it
// cancels in a); the output gate sigmoid(o) at 0.5.
// The paper's states are h, c, n and the stabilizer m. The output depends on c/n and on log n + m
// alone, so the states are h, a = c/n and l = log n + m, where no stabilizer is needed: l is the
// logarithm of the sum of the weights of all inputs, a their weighted mean.
//   F = sigmoid(d), d = log sigmoid(f) + l' - i     the weight f' n' / n of the old mean
//   a = F * a' + (1 - F) * tanh(z)                  c / n, eq. 8-9 and 15-17
//   l = i + softplus(d) = log(sigmoid(f) e^l' + e^i)
//   h = sigmoid(o) * a                              eq. 10
// Without an initial state l is -10^30, the logarithm of the paper's n = 0: then F = 0.

#include "units/step.h"

namespace nmt::units {

struct Slstm {
  static constexpr int inputs = 4, recurrents = 4, late = 0, vectors = 0, states = 3;
  static constexpr bool bias = true;
  static constexpr float state_start[] = {0, 0, -1e30f};
  static constexpr GateBias gate_biases[] = {{BiasOf::state, 1, 1, 1}};  // f
  static constexpr float gate_bias = 1;

  /// d, the logarithm of the odds of the old mean.
  template <class T>
  NMT_HOST_DEVICE static T odds(const Step<T, Slstm>& step) {
    return step.s[2] - math::softplus<T>(-plane(step, 1)) - plane(step, 0);
  }

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Slstm>& step, T& input, T& forget) {
    const T d = odds(step);
    input = math::sigmoid<T>(-d);
    forget = math::sigmoid<T>(d);
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Slstm>& step, T (&next)[3]) {
    T input, forget;
    gates(step, input, forget);
    next[1] = forget * step.s[1] + input * math::tanh<T>(plane(step, 2));
    next[2] = plane(step, 0) + math::softplus<T>(odds(step));
    next[0] = math::sigmoid<T>(plane(step, 3)) * next[1];
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Slstm>& step, const T (&dnext)[3],
                                       Step<T, Slstm>& d) {
    T input, forget;
    gates(step, input, forget);
    const T z = math::tanh<T>(plane(step, 2)), o = math::sigmoid<T>(plane(step, 3));
    const T a = forget * step.s[1] + input * z;
    const T da = dnext[1] + dnext[0] * o;
    const T dgate = da * (step.s[1] - z) * forget * input;
    const T dodds = dgate + dnext[2] * forget;  // softplus' = sigmoid
    d.x[0] = dnext[2] * input - dgate;
    d.x[1] = dodds * math::sigmoid<T>(-plane(step, 1));
    d.x[2] = da * input * tanh_slope(z);
    d.x[3] = dnext[0] * a * sigmoid_slope(o);
    for (int p = 0; p < recurrents; ++p) d.u[p] = d.x[p];
    d.s[0] = T(0);
    d.s[1] = da * forget;
    d.s[2] = dodds;
  }
};

}  // namespace nmt::units
