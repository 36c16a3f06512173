#pragma once

#include "core/host_device.h"
#include "kernels/handles.h"

#include <cstdint>

namespace nmt::kernels {

/// A depthwise causal convolution over the steps of sentences, K taps wide:
///   y_t = bias + sum over k < K of w_k * x_(t-k), channel by channel,
/// with x_(t+k) where the direction is reversed. Inputs at masked steps count as 0, so do those
/// before the first step unless `before` holds them.
struct Convolution {
  std::int64_t taps = 0;   ///< K, at least 1
  std::int64_t steps = 0;  ///< T
  std::int64_t batch = 0;  ///< B
  std::int64_t width = 0;  ///< E
  bool reverse = false;
  const float* x = nullptr;     ///< [T,B,E]
  const float* mask = nullptr;  ///< [T,B] or null
  /// [B,(K-1)*E] the inputs before step 0, the last one first; or null. Not with `reverse`.
  const float* before = nullptr;
  const float* weight = nullptr;  ///< [K,E]
  const float* bias = nullptr;    ///< [E]

  /// The input [E] that step t of sentence b reads with tap k; null: zeros.
  NMT_HOST_DEVICE const float* input(std::int64_t t, std::int64_t b, std::int64_t k) const {
    const std::int64_t at = reverse ? t + k : t - k;
    if (at < 0) return before ? before + (b * (taps - 1) - at - 1) * width : nullptr;
    if (at >= steps || (mask && mask[at * batch + b] == 0.0f)) return nullptr;
    return x + (at * batch + b) * width;
  }
  /// The gradient [E] in dy [T,B,E] that input t of sentence b gets with tap k; null: none.
  NMT_HOST_DEVICE const float* output(const float* dy, std::int64_t t, std::int64_t b,
                                      std::int64_t k) const {
    const std::int64_t at = reverse ? t - k : t + k;
    if (at < 0 || at >= steps || (mask && mask[t * batch + b] == 0.0f)) return nullptr;
    return dy + (at * batch + b) * width;
  }
};

/// Writes y [T,B,E].
NMT_KERNEL(convolution_forward, const Convolution& a, float* y);
/// Gradients, all added to: dx [T,B,E] or null, dweight [K,E], dbias [E]. `before` gets none.
NMT_KERNEL(convolution_backward, const Convolution& a, const float* dy, float* dx, float* dweight,
           float* dbias);
/// Writes the inputs before step T as Convolution::before of the next step, [B,(K-1)*E].
NMT_KERNEL(convolution_last, const Convolution& a, float* last);

}  // namespace nmt::kernels
