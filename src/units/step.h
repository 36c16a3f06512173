#pragma once

#include "kernels/math.h"
#include "kernels/recurrent/gate_bias.h"
#include "kernels/recurrent/layer_place.h"

namespace nmt::units {

using kernels::BiasOf;
using kernels::GateBias;
using kernels::LayerIndex;

constexpr int at_least_one(int n) {
  return n > 0 ? n : 1;
}

/// U::position_vectors, or 0 when the unit does not define it.
template <class U>
constexpr int position_vectors_of = [] {
  if constexpr (requires { U::position_vectors; })
    return U::position_vectors;
  else
    return 0;
}();

/// U::linear_state, or -1 when the unit does not define it.
template <class U>
constexpr int linear_state_of = [] {
  if constexpr (requires { U::linear_state; })
    return U::linear_state;
  else
    return -1;
}();

/// The values that one step of a unit reads for one channel; in the backward pass, their gradients.
///
/// The comment at the top of a unit's file says which planes and vectors are gates and what each
/// starts at with --gate-init constant: its value for an input and states of 0. X is gate_bias.
///
/// A unit U is a struct with these constants
///   inputs      planes of the input projection xW, in the order given at the top of its file
///   recurrents  planes of the recurrent product h'U, where h' = previous[0]
///   late        planes of a second recurrent product, whose input the step computes (gru with
///               reset: before)
///   vectors     trained vectors, per channel
///   states      state vectors; states[0] is h, the output of the unit
///   bias        whether the recurrent product has a bias (the projection xW when there is no
///               recurrent product)
///
/// and the scalar mathematics of one step, templated on the value type (float in a SIMD loop or a
/// CUDA thread, double in a gradient check)
///   forward(step, next)         computes next[states]
///   backward(step, dnext, d)    computes the gradients d of everything in `step`; a unit with
///                               `late` leaves the part through the late value to late_backward
///   late_value(step)            [late > 0] the input of the late product
///   late_backward(step, dl, d)  [late > 0] adds the gradients through the late value to d.x, d.u
///                               and d.s
///
/// Optional members
///   position_vectors            trained vectors per position of a sentence, per channel
///   initial_output              an Activation g with states[0] = g(states[1]), so that an initial
///                               state is only states[1]
///   linear_state                the number of the only state that the next step reads, in a unit
///                               without recurrent products where it becomes a s + b, and neither
///                               a nor b depends on a state. Long sentences are then computed in
///                               chunks (cuda/kernels/recurrent/chunks.h)
///   state_start[]               the state vectors where a layer has no initial state; without it,
///                               0
///   vector_start(k, uniform)    the start of vector k from a uniform draw in [0, 1); without it,
///                               0. A third argument is the LayerIndex of the layer, if the start
///                               depends on it
///   gates(step, input, forget)  the weights of the new input and of the previous state in the next
///                               state; must not read `late`
///   gate_biases[]               GateBias: the biases that --gate-init sets; without it, none
///   gate_bias                   X of --gate-init constant, unless --gate-bias gives another
template <class T, class U>
struct Step {
  T x[at_least_one(U::inputs)];
  T u[at_least_one(U::recurrents)];
  T late[at_least_one(U::late)];
  T v[at_least_one(U::vectors)];
  T position[at_least_one(position_vectors_of<U>)];
  T s[U::states];
};

/// Plane p of the pre-activation: xW + h'U, or xW when there is no recurrent product.
template <class T, class U>
NMT_HOST_DEVICE T plane(const Step<T, U>& step, int p) {
  if constexpr (U::recurrents > 0)
    return step.x[p] + step.u[p];
  else
    return step.x[p];
}

/// The derivative of tanh or sigmoid, given its value.
template <class T>
NMT_HOST_DEVICE T tanh_slope(T y) {
  return T(1) - y * y;
}
template <class T>
NMT_HOST_DEVICE T sigmoid_slope(T y) {
  return y * (T(1) - y);
}

enum class Activation { tanh, identity };
/// What the gates of a unit read: input and previous state, or only the input.
enum class CellInput { xh, x };

/// The activation g, and its derivative at x.
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
