#pragma once

#include "units/step.h"

namespace nmt::units {

/// What one channel of a matrix-state unit reads at a step; in the backward pass, the gradients.
///
/// A matrix-state unit keeps K numbers S_1..S_K per channel: the channel's row of the matrix state
/// of its head. A head is a group of adjacent channels that share K-wide vectors, the planes of a
/// second projection of x. The drivers (kernels/recurrent/matrix_scan.h) run
///   p   = sum_k key_k S'_k                     [reads]
///   w   = write(step, p)
///   S_k = decay_k S'_k + w key_k
///   h   = output(step, sum_k query_k S_k)
/// for every channel, with `decay`, `key` and `query` of the head, and the gradients of these four
/// lines. The unit supplies the scalar mathematics. K and the number of heads are options
/// (--state-width, --state-heads).
///
/// A unit U is a struct with these constants
///   inputs      planes of xW, one number per channel
///   planes      planes of the head: K numbers each, projected from x
///   scalars     numbers of the head, projected from x
///   extras      numbers of the head that `prepare` computes for its channels
///   vectors     trained vectors, one number per channel
///   rows        trained rows, K numbers per channel: 0 or 1; not with `reads` on CUDA
///   memory_vectors, memory_scalars
///               what the head itself remembers: vectors of K numbers, and numbers
///   reads       whether `write` depends on p
///   bias        whether xW has a bias
///   normalizes  whether the layer normalizes the output of each head; `output` then multiplies it
///               by normalized_scale
///
/// and the mathematics, templated on the value type
///   prepare(k, in, out)          a head at one step: decay, key, query, extras and its memory
///   prepare_backward(k, in, out, dout, din)
///                                adds nothing: writes din; dout.memory includes the gradient that
///                                comes from the next step
///   write(step, p)               w; affine in p, with a slope of the extras alone (so that CUDA
///                                can divide long sentences: cuda/kernels/recurrent/matrix)
///   output(step, y)              h
///   write_backward(step, p, dw, d, dp)    adds to d, writes dp
///   output_backward(step, y, dh, d, dy)   adds to d, writes dy
///   pace(step), rate(row)        [rows > 0] decay_k = exp(pace(step) rate(row_k)) of a channel,
///                                instead of the head's
///   pace_backward(step, dpace, d)               adds to d
///   rate_slope(row, rate)                       the derivative of rate(row)
///
/// Optional members
///   bias_start(n, uniform)       start of the bias of plane n, or of scalar n - planes, from a
///                                uniform draw in [0, 1); without it, 0
///   vector_start(n, uniform)     start of vector n; without it, 0
///   row_start(k)                 [rows > 0] start of number k of a row
///   gates(k, in, out, input, forget)
///                                weights of w and of the state before in the state after: K
///                                numbers of the head, or one if gates_per_head; for inspection
///   gates(step, rate, input, forget)
///                                [rows > 0] instead: those of one number of a channel's state;
///                                they read no extras
template <class T, class U>
struct ChannelStep {
  T x[at_least_one(U::inputs)];
  T v[at_least_one(U::vectors)];
  T extra[at_least_one(U::extras)];
};

/// What `prepare` reads: planes [planes,K] one after the other, scalars, the head's memory before
/// the step. In `prepare_backward` with T not const: the gradients, written.
template <class T>
struct HeadInput {
  T* planes;
  T* scalars;
  T* before;
};
/// What `prepare` computes: K numbers each, extras, the head's memory after the step (vectors, then
/// scalars).
template <class T>
struct HeadOutput {
  T* decay;
  T* key;
  T* query;
  T* extra;
  T* memory;
};

/// Numbers that a head remembers.
template <class U>
constexpr int head_memory(int k) {
  return U::memory_vectors * k + U::memory_scalars;
}
/// Numbers of a HeadOutput.
template <class U>
constexpr int head_output(int k) {
  return 3 * k + U::extras + head_memory<U>(k);
}
template <class U, class T>
NMT_HOST_DEVICE HeadOutput<T> head_at(T* from, int k) {
  return {from, from + k, from + 2 * k, from + 3 * k, from + 3 * k + U::extras};
}

/// Factor of h in units whose heads the layer normalizes. The normalization divides by
/// sqrt(variance + 1e-6), so that in the scale of S q the 1e-6 is 0.01: heads whose output is near
/// 0 are not blown up, and their gradients stay bounded.
constexpr double normalized_scale = 0.01;

/// What most units without extras, vectors and rows have in common: w = xW_0, h = y in the
/// scale of normalized heads.
template <class U>
struct PlainRow {
  static constexpr int inputs = 1, scalars = 0, extras = 0, vectors = 0, rows = 0,
                       memory_vectors = 0, memory_scalars = 0;
  static constexpr bool reads = false, bias = false, normalizes = true, gates_per_head = false;

  template <class T>
  NMT_HOST_DEVICE static T write(const ChannelStep<T, U>& step, T) {
    return step.x[0];
  }
  template <class T>
  NMT_HOST_DEVICE static void write_backward(const ChannelStep<T, U>&, T, T dw,
                                             ChannelStep<T, U>& d, T& dp) {
    d.x[0] += dw;
    dp = T(0);
  }
  template <class T>
  NMT_HOST_DEVICE static T output(const ChannelStep<T, U>&, T y) {
    return T(normalized_scale) * y;
  }
  template <class T>
  NMT_HOST_DEVICE static void output_backward(const ChannelStep<T, U>&, T, T dh, ChannelStep<T, U>&,
                                              T& dy) {
    dy = T(normalized_scale) * dh;
  }
};

}  // namespace nmt::units
