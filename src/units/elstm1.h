#pragma once

// ELSTM-I: extended-long short-term memory ("Dependent Bidirectional RNN with Extended-long
// Short-term Memory", 2018, eq. 20-21).
// Planes of xW and h'U: i, f, o, g. Per-channel vector b. s_t: a trained vector of position t.
// States: h, c.
// Gates: f starts at sigmoid(X), i at sigmoid(-X/2), X = 1; the output gate o starts at 0.5, s_t at
// 1 and b at 0.
//   c = sigmoid(f) * c' + s_t * sigmoid(i) * tanh(g)
//   h = sigmoid(o) * tanh(c + b)
//   i, f, o, g = xW + h'U   input: xh, where the unit reads [x; h'] (section 5.1)
//   i, f, o, g = xW         input: x; no recurrent product: the next step reads only c

#include "units/step.h"

namespace nmt::units {

template <CellInput cell_input>
struct Elstm1 {
  static constexpr int inputs = 4, recurrents = cell_input == CellInput::xh ? 4 : 0, late = 0,
                       vectors = 1, states = 2;
  static constexpr int position_vectors = 1;
  static constexpr bool bias = true;
  static constexpr BiasOf place = recurrents > 0 ? BiasOf::state : BiasOf::input;
  static constexpr GateBias gate_biases[] = {{place, 1, 1, 1},        // f
                                             {place, 0, -0.5f, -1}};  // i
  static constexpr float gate_bias = 1;

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Elstm1>& step, T& input, T& forget) {
    input = step.position[0] * math::sigmoid<T>(plane(step, 0));  // eq. 24
    forget = math::sigmoid<T>(plane(step, 1));
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Elstm1>& step, T (&next)[2]) {
    T i, f;
    gates(step, i, f);
    next[1] = f * step.s[1] + i * math::tanh<T>(plane(step, 3));                      // eq. 20
    next[0] = math::sigmoid<T>(plane(step, 2)) * math::tanh<T>(next[1] + step.v[0]);  // eq. 21
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Elstm1>& step, const T (&dnext)[2],
                                       Step<T, Elstm1>& d) {
    const T i = math::sigmoid<T>(plane(step, 0)), f = math::sigmoid<T>(plane(step, 1)),
            o = math::sigmoid<T>(plane(step, 2)), g = math::tanh<T>(plane(step, 3)),
            s = step.position[0];
    const T y = math::tanh<T>(f * step.s[1] + s * i * g + step.v[0]);
    const T db = dnext[0] * o * tanh_slope(y);
    const T dc = dnext[1] + db;
    d.x[0] = dc * s * g * sigmoid_slope(i);
    d.x[1] = dc * step.s[1] * sigmoid_slope(f);
    d.x[2] = dnext[0] * y * sigmoid_slope(o);
    d.x[3] = dc * s * i * tanh_slope(g);
    for (int p = 0; p < recurrents; ++p) d.u[p] = d.x[p];
    d.v[0] = db;
    d.position[0] = dc * i * g;
    d.s[0] = T(0);
    d.s[1] = dc * f;
  }
};

}  // namespace nmt::units
