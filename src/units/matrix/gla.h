#pragma once

// GLA: gated linear attention (Yang et al., "Gated Linear Attention Transformers with
// Hardware-Efficient Training", arXiv 2312.06635, sections 4.1 and 4.4; the gate's projection has
// full rank here). Plane of xW: v. Planes of the head: q, k, a.
// Gate: alpha starts at 0.5^(1/16), about 0.96. --gate-init does not change it.
//   alpha = sigmoid(xWa + ba)^(1/16)
//   S = S' diag(alpha) + v k^T
//   h = S q

#include "units/matrix/matrix_state.h"

namespace nmt::units {

struct Gla : PlainRow<Gla> {
  static constexpr int planes = 3;

  template <class T>
  NMT_HOST_DEVICE static void prepare(int k, const HeadInput<const T>& in,
                                      const HeadOutput<T>& out) {
    for (int i = 0; i < k; ++i) {
      out.query[i] = in.planes[i];
      out.key[i] = in.planes[k + i];
      out.decay[i] = math::exp<T>(math::softplus<T>(-in.planes[2 * k + i]) * T(-1.0 / 16));
    }
  }

  template <class T>
  NMT_HOST_DEVICE static void gates(int k, const HeadInput<const T>&, const HeadOutput<T>& out,
                                    T* input, T* forget) {
    for (int i = 0; i < k; ++i) {
      input[i] = T(1);
      forget[i] = out.decay[i];
    }
  }

  template <class T>
  NMT_HOST_DEVICE static void prepare_backward(int k, const HeadInput<const T>& in,
                                               const HeadOutput<const T>& out,
                                               const HeadOutput<const T>& dout,
                                               const HeadInput<T>& din) {
    for (int i = 0; i < k; ++i) {
      din.planes[i] = dout.query[i];
      din.planes[k + i] = dout.key[i];
      din.planes[2 * k + i] =
          dout.decay[i] * out.decay[i] * T(1.0 / 16) * math::sigmoid<T>(-in.planes[2 * k + i]);
    }
  }
};

}  // namespace nmt::units
