#pragma once

// DeltaNet (Schlag, Irie and Schmidhuber, "Linear Transformers Are Secretly Fast Weight
// Programmers", arXiv 2102.11174, section 4.2; keys and queries of length 1 as in Yang et al.,
// "Parallelizing Linear Transformers with the Delta Rule over Sequence Length", arXiv 2406.06484).
// Plane of xW: v. Planes of the head: q, k; scalar: b.
// Gate: beta, the weight of the new value, starts at 0.5.
//   beta = sigmoid(xWb + bb), k = xWk / |xWk|, q = xWq / |xWq|
//   S = S' (I - beta k k^T) + beta v k^T
//   h = S q

#include "units/matrix/gdn.h"

namespace nmt::units {

struct DeltaNet : PlainRow<DeltaNet> {
  static constexpr int planes = 2, scalars = 1, extras = 1;
  static constexpr bool reads = true;

  template <class T>
  NMT_HOST_DEVICE static void prepare(int k, const HeadInput<const T>& in,
                                      const HeadOutput<T>& out) {
    const T query = Gdn::inverse_length(k, in.planes), key = Gdn::inverse_length(k, in.planes + k);
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
    Gdn::normalize_backward(k, in.planes, out.query, dout.query, din.planes);
    Gdn::normalize_backward(k, in.planes + k, out.key, dout.key, din.planes + k);
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
