#pragma once

// GDN: Gated DeltaNet (Yang et al., "Gated Delta Networks: Improving Mamba2 with Delta Rule", arXiv
// 2412.06464, eq. 10, with keys and queries of length 1 as in section 3.4). Plane of xW: v. Planes
// of the head: q, k; scalars: a, b.
// Gates: alpha, the decay, starts between 0.88 and 0.998, beta, the weight of the new value, at
// 0.5. --gate-init does not change them.
//   alpha = sigmoid(xWa + ba), beta = sigmoid(xWb + bb)
// The paper's alpha is that of Mamba2, exp(-A softplus(xW + b)) with a trained A > 0 per head; here
// A = 1, since sigmoid(z) = exp(-softplus(-z)).
//   k = xWk / |xWk|, q = xWq / |xWq|
//   S = alpha S' (I - beta k k^T) + beta v k^T
//   h = S q

#include "units/matrix/matrix_state.h"

#include <cmath>

namespace nmt::units {

struct Gdn : PlainRow<Gdn> {
  static constexpr int planes = 2, scalars = 2, extras = 2;
  static constexpr bool reads = true, gates_per_head = true;

  /// Decays start between 0.88 and 0.998.
  static double bias_start(int plane, double uniform) { return plane == 2 ? 2 + 4 * uniform : 0; }

  /// 1 / |x|, bounded for vectors near 0.
  template <class T>
  NMT_HOST_DEVICE static T inverse_length(int k, const T* x) {
    T sum = T(1e-12);
    for (int i = 0; i < k; ++i) sum += x[i] * x[i];
    return T(1) / std::sqrt(sum);
  }
  template <class T>
  NMT_HOST_DEVICE static void normalize_backward(int k, const T* x, const T* y, const T* dy,
                                                 T* dx) {
    const T inverse = inverse_length(k, x);
    T along = T(0);
    for (int i = 0; i < k; ++i) along += y[i] * dy[i];
    for (int i = 0; i < k; ++i) dx[i] = (dy[i] - along * y[i]) * inverse;
  }

  template <class T>
  NMT_HOST_DEVICE static void prepare(int k, const HeadInput<const T>& in,
                                      const HeadOutput<T>& out) {
    const T alpha = math::sigmoid<T>(in.scalars[0]), beta = math::sigmoid<T>(in.scalars[1]);
    const T query = inverse_length(k, in.planes), key = inverse_length(k, in.planes + k);
    for (int i = 0; i < k; ++i) {
      out.query[i] = in.planes[i] * query;
      out.key[i] = in.planes[k + i] * key;
      out.decay[i] = alpha;
    }
    out.extra[0] = alpha;
    out.extra[1] = beta;
  }

  template <class T>
  NMT_HOST_DEVICE static void gates(int, const HeadInput<const T>&, const HeadOutput<T>& out,
                                    T* input, T* forget) {
    *input = out.extra[1];
    *forget = out.extra[0];
  }

  template <class T>
  NMT_HOST_DEVICE static void prepare_backward(int k, const HeadInput<const T>& in,
                                               const HeadOutput<const T>& out,
                                               const HeadOutput<const T>& dout,
                                               const HeadInput<T>& din) {
    T dalpha = dout.extra[0];
    for (int i = 0; i < k; ++i) dalpha += dout.decay[i];
    din.scalars[0] = dalpha * sigmoid_slope(out.extra[0]);
    din.scalars[1] = dout.extra[1] * sigmoid_slope(out.extra[1]);
    normalize_backward(k, in.planes, out.query, dout.query, din.planes);
    normalize_backward(k, in.planes + k, out.key, dout.key, din.planes + k);
  }

  template <class T>
  NMT_HOST_DEVICE static T write(const ChannelStep<T, Gdn>& step, T p) {
    return step.extra[1] * (step.x[0] - step.extra[0] * p);
  }
  template <class T>
  NMT_HOST_DEVICE static void write_backward(const ChannelStep<T, Gdn>& step, T p, T dw,
                                             ChannelStep<T, Gdn>& d, T& dp) {
    const T alpha = step.extra[0], beta = step.extra[1];
    d.x[0] += dw * beta;
    d.extra[0] -= dw * beta * p;
    d.extra[1] += dw * (step.x[0] - alpha * p);
    dp = -dw * beta * alpha;
  }
};

}  // namespace nmt::units
