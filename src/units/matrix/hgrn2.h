#pragma once

// HGRN2 (Qin et al., "HGRN2: Gated Linear RNNs with State Expansion", arXiv 2404.07904, section
// 3.2), with lower bound 0 of the forget gate. Plane of xW: v. Planes of the head: q, f.
// Gate: f starts between 0.73 and 0.98. --gate-init does not change it.
//   f = sigmoid(xWf + bf)
//   S = S' diag(f) + v (1 - f)^T
//   h = S q

#include "units/matrix/matrix_state.h"

namespace nmt::units {

struct Hgrn2 : PlainRow<Hgrn2> {
  static constexpr int planes = 2;

  /// Forget gates start between 0.73 and 0.98.
  static double bias_start(int plane, double uniform) { return plane == 1 ? 1 + 3 * uniform : 0; }

  template <class T>
  NMT_HOST_DEVICE static void prepare(int k, const HeadInput<const T>& in,
                                      const HeadOutput<T>& out) {
    for (int i = 0; i < k; ++i) {
      out.query[i] = in.planes[i];
      out.decay[i] = math::sigmoid<T>(in.planes[k + i]);
      out.key[i] = T(1) - out.decay[i];
    }
  }

  template <class T>
  NMT_HOST_DEVICE static void gates(int k, const HeadInput<const T>&, const HeadOutput<T>& out,
                                    T* input, T* forget) {
    for (int i = 0; i < k; ++i) {
      input[i] = out.key[i];
      forget[i] = out.decay[i];
    }
  }

  template <class T>
  NMT_HOST_DEVICE static void prepare_backward(int k, const HeadInput<const T>&,
                                               const HeadOutput<const T>& out,
                                               const HeadOutput<const T>& dout,
                                               const HeadInput<T>& din) {
    for (int i = 0; i < k; ++i) {
      din.planes[i] = dout.query[i];
      din.planes[k + i] = (dout.decay[i] - dout.key[i]) * sigmoid_slope(out.decay[i]);
    }
  }
};

}  // namespace nmt::units
