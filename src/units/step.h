#pragma once

#include "kernels/math.h"

namespace nmt::units {

constexpr int at_least_one(int n) {
  return n > 0 ? n : 1;
}

/// A unit's optional constant position_vectors.
template <class U>
constexpr int position_vectors_of = [] {
  if constexpr (requires { U::position_vectors; })
    return U::position_vectors;
  else
    return 0;
}();

/// What one step of a unit reads for one channel; in the backward pass, the gradients of the same.
/// A unit U is a struct with
///   inputs      planes of the input projection xW, in the order that the file's head names
///   recurrents  planes of the recurrent product h'U, h' = previous[0]
///   late        planes of a second recurrent product, of a value that the step itself computes
///   first (gru with reset: before) vectors     per-channel trained vectors states      state
///   vectors; states[0] is h, the unit's output bias        whether the recurrent product carries a
///   bias (the projection xW where the unit has no such product)
/// and with the scalar mathematics of one step, templated on the value type (float in a SIMD loop
/// or a CUDA thread, double in a gradient check):
///   forward(step, next)         next[states] from the step's values
///   backward(step, dnext, d)    d = gradients of everything in step; `late` units leave the part
///   that runs through the late
///                               value to late_backward
///   late_value(step)            [late > 0] what the late matrix multiplies
///   late_backward(step, dl, d)  [late > 0] adds the gradients that run through the late value to
///   d.x, d.u and d.s
/// and, where it has them,
///   position_vectors            trained vectors of each position of a sentence, per channel
///   initial_output              an Activation g: states[0] = g(states[1]) always, so that an
///   initial state is states[1] alone gates(step, input, forget)  the share of the new input and of
///   the old state that the next state takes; reads neither late planes nor position
template <class T, class U>
struct Step {
  T x[at_least_one(U::inputs)];
  T u[at_least_one(U::recurrents)];
  T late[at_least_one(U::late)];
  T v[at_least_one(U::vectors)];
  T position[at_least_one(position_vectors_of<U>)];
  T s[U::states];
};

/// Plane p of what the unit reads: xW + h'U, or xW alone where there is no recurrent product.
template <class T, class U>
NMT_HOST_DEVICE T plane(const Step<T, U>& step, int p) {
  if constexpr (U::recurrents > 0)
    return step.x[p] + step.u[p];
  else
    return step.x[p];
}

/// The derivative of tanh or sigmoid from its value.
template <class T>
NMT_HOST_DEVICE T tanh_slope(T y) {
  return T(1) - y * y;
}
template <class T>
NMT_HOST_DEVICE T sigmoid_slope(T y) {
  return y * (T(1) - y);
}

enum class Activation { tanh, identity };
/// What the gates of a unit read: the input alone, or the input and the state before.
enum class CellInput { xh, x };

/// g of the papers, and its derivative at x.
template <Activation g, class T>
NMT_HOST_DEVICE T activate(T x) {
  if constexpr (g == Activation::tanh)
    return math::tanh<T>(x);
  else
    return x;
}
template <Activation g, class T>
NMT_HOST_DEVICE T activation_slope(T x) {
  if constexpr (g == Activation::tanh)
    return tanh_slope(math::tanh<T>(x));
  else
    return T(1);
}

}  // namespace nmt::units
