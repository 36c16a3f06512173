#pragma once

// ELSTM-II: ELSTM without a forget gate ("Dependent Bidirectional RNN with Extended-long Short-term
// Memory", 2018, eq. 22-23).
// Planes of xW and h'U: i, o, g. Per-channel vector b. s_t: a trained vector of position t. States:
// h, c.
// Gates: i starts at sigmoid(-X/2); X = 0, so at 0.5. The output gate o starts at 0.5, s_t at 1 and
// b at 0. Nothing is forgotten.
//   c = c' + s_t * sigmoid(i) * tanh(g)
//   h = sigmoid(o) * tanh(c + b)
//   i, o, g = xW + h'U   input: xh, where the unit reads [x; h'] (section 5.1)
//   i, o, g = xW         input: x; no recurrent product: the next step reads only c

#include "units/step.h"

namespace nmt::units {

template <CellInput cell_input>
struct Elstm2 {
  static constexpr int inputs = 3, recurrents = cell_input == CellInput::xh ? 3 : 0, late = 0,
                       vectors = 1, states = 2;
  static constexpr int position_vectors = 1;
  static constexpr bool bias = true;
  static constexpr GateBias gate_biases[] = {
      {recurrents > 0 ? BiasOf::state : BiasOf::input, 0, -0.5f, -1}};  // i; nothing is forgotten
  static constexpr float gate_bias = 0;

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Elstm2>& step, T& input, T& forget) {
    input = step.position[0] * math::sigmoid<T>(plane(step, 0));  // eq. 24
    forget = T(1);
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Elstm2>& step, T (&next)[2]) {
    next[1] = step.s[1] + step.position[0] * math::sigmoid<T>(plane(step, 0)) *
                              math::tanh<T>(plane(step, 2));                          // eq. 22
    next[0] = math::sigmoid<T>(plane(step, 1)) * math::tanh<T>(next[1] + step.v[0]);  // eq. 23
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Elstm2>& step, const T (&dnext)[2],
                                       Step<T, Elstm2>& d) {
    const T i = math::sigmoid<T>(plane(step, 0)), o = math::sigmoid<T>(plane(step, 1)),
            g = math::tanh<T>(plane(step, 2));
    const T s = step.position[0], y = math::tanh<T>(step.s[1] + s * i * g + step.v[0]);
    const T db = dnext[0] * o * tanh_slope(y);
    const T dc = dnext[1] + db;
    d.x[0] = dc * s * g * sigmoid_slope(i);
    d.x[1] = dnext[0] * y * sigmoid_slope(o);
    d.x[2] = dc * s * i * tanh_slope(g);
    for (int p = 0; p < recurrents; ++p) d.u[p] = d.x[p];
    d.v[0] = db;
    d.position[0] = dc * i * g;
    d.s[0] = T(0);
    d.s[1] = dc;
  }
};

}  // namespace nmt::units
