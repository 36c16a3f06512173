#pragma once

// DeltaNet (Schlag, Irie and Schmidhuber, "Linear Transformers Are Secretly Fast Weight
// Programmers", arXiv 2102.11174, section 4.2; keys and queries of length 1 as in Yang et al.,
// "Parallelizing Linear Transformers with the Delta Rule over Sequence Length", arXiv 2406.06484).
// Plane of xW: v. Planes of the head: q, k; scalar: b.
// Gate: beta, the weight of the new value, starts at 0.5.
//   beta = sigmoid(xWb + bb), k = xWk / |xWk|, q = xWq / |xWq|
//   S = S' (I - beta k k^T) + beta v k^T
//   h = S q

#include "units/matrix/matrix_state.h"

#include <cmath>

namespace nmt::units {

struct DeltaNet : PlainRow<DeltaNet> {
  static constexpr int planes = 2, scalars = 1, extras = 1;
  static constexpr bool reads = true;

  /// 1 / |x|, bounded for vectors near 0.
  template <class T>
  NMT_HOST_DEVICE static T inverse_length(int k, const T* x) {
    T sum = T(1e-12);
    for (int i = 0; i < k; ++i) sum += x[i] * x[i];
    return T(1) / std::sqrt(sum);
  }

  template <class T>
  NMT_HOST_DEVICE static void prepare(int k, const HeadInput<const T>& in,
                                      const HeadOutput<T>& out) {
    const T query = inverse_length(k, in.planes), key = inverse_length(k, in.planes + k);
    for (int i = 0; i < k; ++i) {
      out.query[i] = in.planes[i] * query;
      out.key[i] = in.planes[k + i] * key;
      out.decay[i] = T(1);
    }
    out.extra[0] = math::sigmoid<T>(in.scalars[0]);
  }

  template <class T>
  NMT_HOST_DEVICE static void prepare_backward(int k, const HeadInput<const T>& in,
                                               const HeadOutput<const T>& out,
                                               const HeadOutput<const T>& dout,
                                               const HeadInput<T>& din) {
    T along_query = T(0), along_key = T(0);
    for (int i = 0; i < k; ++i) {
      along_query += out.query[i] * dout.query[i];
      along_key += out.key[i] * dout.key[i];
    }
    const T query = inverse_length(k, in.planes), key = inverse_length(k, in.planes + k);
    for (int i = 0; i < k; ++i) {
      din.planes[i] = (dout.query[i] - along_query * out.query[i]) * query;
      din.planes[k + i] = (dout.key[i] - along_key * out.key[i]) * key;
    }
    din.scalars[0] = dout.extra[0] * sigmoid_slope(out.extra[0]);
  }

  template <class T>
  NMT_HOST_DEVICE static T write(const ChannelStep<T, DeltaNet>& step, T p) {
    return step.extra[0] * (step.x[0] - p);
  }
  template <class T>
  NMT_HOST_DEVICE static void write_backward(const ChannelStep<T, DeltaNet>& step, T p, T dw,
                                             ChannelStep<T, DeltaNet>& d, T& dp) {
    d.x[0] += dw * step.extra[0];
    d.extra[0] += dw * (step.x[0] - p);
    dp = -dw * step.extra[0];
  }
};

}  // namespace nmt::units
