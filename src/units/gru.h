#pragma once

// GRU: gated recurrent unit (Cho et al. 2014; as in Zhang et al., ATR, EMNLP 2018, eq. 2-5).
// Planes of xW: z, r, n.
// Gates: z, the forget gate, starts at sigmoid(X); X = 0, so at 0.5. The reset gate r starts at
// 0.5.
//   z = sigmoid(xWz + h'Uz)
//   r = sigmoid(xWr + h'Ur)
//   n = tanh(xWn + (r * h')Un)   reset: before; Un is a late matrix: its product needs r
//   n = tanh(xWn + r * (h'Un))   reset: after, as in cuDNN and PyTorch
//   h = z * h' + (1 - z) * n

#include "units/step.h"

namespace nmt::units {

enum class Reset { before, after };

template <Reset reset>
struct Gru {
  static constexpr bool before = reset == Reset::before;
  static constexpr int inputs = 3, recurrents = before ? 2 : 3, late = before ? 1 : 0, vectors = 0,
                       states = 1;
  static constexpr bool bias = true;
  static constexpr GateBias gate_biases[] = {{BiasOf::state, 0, 1, 1}};  // z
  static constexpr float gate_bias = 0;

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Gru>& step, T& input, T& forget) {
    forget = math::sigmoid<T>(step.x[0] + step.u[0]);  // z
    input = T(1) - forget;
  }

  template <class T>
  NMT_HOST_DEVICE static T reset_gate(const Step<T, Gru>& step) {
    return math::sigmoid<T>(step.x[1] + step.u[1]);
  }

  template <class T>
  NMT_HOST_DEVICE static T candidate(const Step<T, Gru>& step, T r) {
    if constexpr (before)
      return math::tanh<T>(step.x[2] + step.late[0]);
    else
      return math::tanh<T>(step.x[2] + r * step.u[2]);
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Gru>& step, T (&next)[1]) {
    T i, z;
    gates(step, i, z);
    next[0] = z * step.s[0] + i * candidate(step, reset_gate(step));
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Gru>& step, const T (&dnext)[1],
                                       Step<T, Gru>& d) {
    T i, z;
    gates(step, i, z);
    const T r = reset_gate(step), n = candidate(step, r);
    const T dz = dnext[0] * (step.s[0] - n) * sigmoid_slope(z);
    const T dn = dnext[0] * i * tanh_slope(n);
    d.x[0] = d.u[0] = dz;
    d.x[2] = dn;
    d.s[0] = dnext[0] * z;
    if constexpr (before) {
      d.late[0] = dn;
      d.x[1] = d.u[1] = T(0);
    } else {
      d.x[1] = d.u[1] = dn * step.u[2] * sigmoid_slope(r);
      d.u[2] = dn * r;
    }
  }

  template <class T>
  NMT_HOST_DEVICE static T late_value(const Step<T, Gru>& step) {
    return reset_gate(step) * step.s[0];  // r * h'
  }

  template <class T>
  NMT_HOST_DEVICE static void late_backward(const Step<T, Gru>& step, T dlate, Step<T, Gru>& d) {
    const T r = reset_gate(step);
    const T dr = dlate * step.s[0] * sigmoid_slope(r);
    d.x[1] += dr;
    d.u[1] += dr;
    d.s[0] += dlate * r;
  }
};

}  // namespace nmt::units
