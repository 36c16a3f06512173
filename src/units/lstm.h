#pragma once

// LSTM (Hochreiter & Schmidhuber 1997) with a forget gate, as in the ELSTM paper, eq. 6-7.
// Planes of xW and h'U: i, f, o, g. States: h, c.
// Gates: f starts at sigmoid(X), X = 1; i and the output gate o start at 0.5.
//   i, f, o = sigmoid(.),  g = tanh(.)
//   c = f * c' + i * g
//   h = o * tanh(c)
//   i, f, o, g of xW + h'U   input: xh, where the unit reads [x; h']
//   i, f, o, g of xW         input: x (tables 3 and 5); the next step reads only c

#include "units/step.h"

namespace nmt::units {

template <CellInput cell_input>
struct Lstm {
  static constexpr int inputs = 4, recurrents = cell_input == CellInput::xh ? 4 : 0, late = 0,
                       vectors = 0, states = 2;
  static constexpr int linear_state = recurrents > 0 ? -1 : 1;
  static constexpr bool bias = true;
  static constexpr BiasOf place = recurrents > 0 ? BiasOf::state : BiasOf::input;
  // Jozefowicz et al. (ICML 2015) raise the bias of the forget gate alone, to 1.
  static constexpr GateBias gate_biases[] = {{place, 1, 1, 1},    // f
                                             {place, 0, 0, -1}};  // i
  static constexpr float gate_bias = 1;

  template <class T>
  NMT_HOST_DEVICE static void gates(const Step<T, Lstm>& step, T& input, T& forget) {
    input = math::sigmoid<T>(plane(step, 0));
    forget = math::sigmoid<T>(plane(step, 1));
  }

  template <class T>
  struct Values {
    T i, f, o, g, c;
  };

  template <class T>
  NMT_HOST_DEVICE static Values<T> values(const Step<T, Lstm>& step) {
    Values<T> at;
    gates(step, at.i, at.f);
    at.o = math::sigmoid<T>(plane(step, 2));
    at.g = math::tanh<T>(plane(step, 3));
    at.c = at.f * step.s[1] + at.i * at.g;  // eq. 6
    return at;
  }

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Lstm>& step, T (&next)[2]) {
    const Values<T> at = values(step);
    next[0] = at.o * math::tanh<T>(at.c);  // eq. 7
    next[1] = at.c;
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Lstm>& step, const T (&dnext)[2],
                                       Step<T, Lstm>& d) {
    const Values<T> at = values(step);
    const T y = math::tanh<T>(at.c);
    const T dc = dnext[1] + dnext[0] * at.o * tanh_slope(y);
    d.x[0] = dc * at.g * sigmoid_slope(at.i);
    d.x[1] = dc * step.s[1] * sigmoid_slope(at.f);
    d.x[2] = dnext[0] * y * sigmoid_slope(at.o);
    d.x[3] = dc * at.i * tanh_slope(at.g);
    for (int p = 0; p < recurrents; ++p) d.u[p] = d.x[p];
    d.s[0] = T(0);
    d.s[1] = dc * at.f;
  }
};

}  // namespace nmt::units
