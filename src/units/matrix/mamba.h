#pragma once

// Mamba's selective state space (Gu & Dao, "Mamba: Linear-Time Sequence Modeling with Selective
// State Spaces", arXiv 2312.00752, section 3.2 and algorithm 2), diagonal A. Planes of xW: u, d.
// Planes of the head: B, C. The projection of d has full rank here; the paper's convolution and
// gate branch are settings of the layer. Vectors: D, bd. Row: log(-A).
// Gate: delta starts between 0.001 and 0.1, so the decay exp(delta A_n) between e^(-0.1 n) and
// e^(-0.001 n). --gate-init does not change it.
//   delta = softplus(xWd + bd)
//   S_n = exp(delta A_n) S'_n + delta B_n u
//   h = sum_n C_n S_n + D u
// With one head, all channels share B and C, as in the paper.

#include "units/matrix/matrix_state.h"

#include <cmath>

namespace nmt::units {

struct Mamba : PlainRow<Mamba> {
  static constexpr int inputs = 2, planes = 2, vectors = 2, rows = 1;
  static constexpr bool normalizes = false;

  /// D = 1; bd such that delta without input is log-uniform in [0.001, 0.1] (section 3.6).
  static double vector_start(int vector, double uniform) {
    if (vector == 0) return 1;
    return std::log(std::expm1(std::exp(std::log(0.001) + uniform * std::log(100.0))));
  }
  /// A_n = -n (S4D-Real, section 3.6).
  static double row_start(int k) { return std::log(1.0 + k); }

  template <class T>
  NMT_HOST_DEVICE static void prepare(int k, const HeadInput<const T>& in,
                                      const HeadOutput<T>& out) {
    for (int i = 0; i < k; ++i) {
      out.key[i] = in.planes[i];
      out.query[i] = in.planes[k + i];
      out.decay[i] = T(0);  // each channel has its own
    }
  }
  template <class T>
  NMT_HOST_DEVICE static void prepare_backward(int k, const HeadInput<const T>&,
                                               const HeadOutput<const T>&,
                                               const HeadOutput<const T>& dout,
                                               const HeadInput<T>& din) {
    for (int i = 0; i < k; ++i) {
      din.planes[i] = dout.key[i];
      din.planes[k + i] = dout.query[i];
    }
  }

  template <class T>
  NMT_HOST_DEVICE static T pace(const ChannelStep<T, Mamba>& step) {
    return math::softplus<T>(step.x[1] + step.v[1]);  // delta
  }
  template <class T>
  NMT_HOST_DEVICE static void pace_backward(const ChannelStep<T, Mamba>& step, T dpace,
                                            ChannelStep<T, Mamba>& d) {
    const T slope = dpace * math::sigmoid<T>(step.x[1] + step.v[1]);
    d.x[1] += slope;
    d.v[1] += slope;
  }
  template <class T>
  NMT_HOST_DEVICE static T rate(T row) {
    return -math::exp<T>(row);  // A
  }
  template <class T>
  NMT_HOST_DEVICE static T rate_slope(T, T rate) {
    return rate;
  }

  template <class T>
  NMT_HOST_DEVICE static void gates(const ChannelStep<T, Mamba>& step, T rate, T& input,
                                    T& forget) {
    input = pace(step);
    forget = math::exp<T>(input * rate);
  }

  template <class T>
  NMT_HOST_DEVICE static T write(const ChannelStep<T, Mamba>& step, T) {
    return pace(step) * step.x[0];
  }
  template <class T>
  NMT_HOST_DEVICE static void write_backward(const ChannelStep<T, Mamba>& step, T, T dw,
                                             ChannelStep<T, Mamba>& d, T& dp) {
    d.x[0] += dw * pace(step);
    pace_backward(step, dw * step.x[0], d);
    dp = T(0);
  }
  template <class T>
  NMT_HOST_DEVICE static T output(const ChannelStep<T, Mamba>& step, T y) {
    return y + step.v[0] * step.x[0];
  }
  template <class T>
  NMT_HOST_DEVICE static void output_backward(const ChannelStep<T, Mamba>& step, T, T dh,
                                              ChannelStep<T, Mamba>& d, T& dy) {
    d.x[0] += dh * step.v[0];
    d.v[0] += dh * step.x[0];
    dy = dh;
  }
};

}  // namespace nmt::units
