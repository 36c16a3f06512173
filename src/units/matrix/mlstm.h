#pragma once

// mLSTM (Beck et al., "xLSTM: Extended Long Short-Term Memory", arXiv 2405.04517, eq. 19-27,
// stabilized as in appendix A.3). Planes of xW: v, o. Planes of the head: q, k; scalars: i, f.
// Gates: sigmoid(f) starts between 0.95 and 0.998, the input gate e^i at 1, the output gate o at
// 0.5. --gate-init does not change them.
//   log f = log sigmoid(xWf + bf),  m = max(log f + m', xWi + bi)
//   f~ = exp(log f + m' - m),  i~ = exp(xWi + bi - m)
//   k = xWk / sqrt(K)
//   C = f~ C' + i~ v k^T,  n = f~ n' + i~ k
//   h = sigmoid(xWo) * C q / max(|n.q|, e^-m)
// e^-m is the 1 of the paper's equations in the stabilized scale, so h does not depend on m, and no
// gradient passes through m. The head remembers n and m.

#include "units/matrix/matrix_state.h"

#include <cmath>

namespace nmt::units {

struct Mlstm : PlainRow<Mlstm> {
  static constexpr int inputs = 2, planes = 2, scalars = 2, extras = 3, memory_vectors = 1,
                       memory_scalars = 1;
  static constexpr bool bias = true, gates_per_head = true;

  /// Forget gates start between 0.95 and 0.998.
  static double bias_start(int plane, double uniform) { return plane == 3 ? 3 + 3 * uniform : 0; }

  // extra: 1 / max(|n.q|, e^-m); n.q; i~.
  template <class T>
  NMT_HOST_DEVICE static void prepare(int k, const HeadInput<const T>& in,
                                      const HeadOutput<T>& out) {
    const T logf = -math::softplus<T>(-in.scalars[1]), i = in.scalars[0], before = in.before[k];
    const T kept = logf + before, m = kept < i ? i : kept;
    const T forget = math::exp<T>(kept - m), input = math::exp<T>(i - m);
    const T scale = input / std::sqrt(T(k));
    T along = T(0);
    for (int j = 0; j < k; ++j) {
      out.query[j] = in.planes[j];
      out.key[j] = in.planes[k + j] * scale;
      out.decay[j] = forget;
      out.memory[j] = forget * in.before[j] + out.key[j];
      along += out.memory[j] * out.query[j];
    }
    out.memory[k] = m;
    const T size = along < T(0) ? -along : along, least = math::exp<T>(-m);
    out.extra[0] = T(1) / (size < least ? least : size);
    out.extra[1] = along;
    out.extra[2] = input;
  }

  /// Not in the stabilized scale: i and f.
  template <class T>
  NMT_HOST_DEVICE static void gates(int, const HeadInput<const T>& in, const HeadOutput<T>&,
                                    T* input, T* forget) {
    *input = math::exp<T>(in.scalars[0]);
    *forget = math::sigmoid<T>(in.scalars[1]);
  }

  template <class T>
  NMT_HOST_DEVICE static void prepare_backward(int k, const HeadInput<const T>& in,
                                               const HeadOutput<const T>& out,
                                               const HeadOutput<const T>& dout,
                                               const HeadInput<T>& din) {
    const T inverse = out.extra[0], along = out.extra[1], input = out.extra[2];
    const T forget = out.decay[0], scale = input / std::sqrt(T(k));
    const T m = out.memory[k], size = along < T(0) ? -along : along;
    const bool bounded = size < math::exp<T>(-m);
    // h does not depend on m, so m counts as a constant.
    const T dalong =
        bounded ? T(0) : (along < T(0) ? T(1) : T(-1)) * dout.extra[0] * inverse * inverse;
    T dforget = T(0), dinput = T(0);
    for (int j = 0; j < k; ++j) {
      const T dn = dout.memory[j] + dalong * out.query[j];
      const T dkey = dout.key[j] + dn;
      din.planes[j] = dout.query[j] + dalong * out.memory[j];
      din.planes[k + j] = dkey * scale;
      dinput += dkey * out.key[j];  // times i~: the derivative of exp
      dforget += dout.decay[j] + dn * in.before[j];
      din.before[j] = dn * forget;
    }
    din.before[k] = T(0);
    din.scalars[0] = dinput;
    din.scalars[1] = dforget * forget * math::sigmoid<T>(-in.scalars[1]);
  }

  template <class T>
  NMT_HOST_DEVICE static T output(const ChannelStep<T, Mlstm>& step, T y) {
    return T(normalized_scale) * math::sigmoid<T>(step.x[1]) * y * step.extra[0];
  }
  template <class T>
  NMT_HOST_DEVICE static void output_backward(const ChannelStep<T, Mlstm>& step, T y, T dh,
                                              ChannelStep<T, Mlstm>& d, T& dy) {
    const T o = math::sigmoid<T>(step.x[1]);
    dh *= T(normalized_scale);
    d.x[1] += dh * y * step.extra[0] * sigmoid_slope(o);
    d.extra[0] += dh * o * y;
    dy = dh * o * step.extra[0];
  }
};

}  // namespace nmt::units
