#pragma once

#include "core/host_device.h"
#include "kernels/device_math.h"
#include "kernels/handles.h"
#include "kernels/products/bfloat16.h"

#include <cmath>
#include <cstdint>

namespace nmt::kernels {

/// One parameter tensor of an update. Every pointer has n floats.
struct OptimizerSlice {
  std::int64_t n = 0;
  float* value = nullptr;
  float* gradient = nullptr;  ///< set to zero after use, unless keeps_gradient
  /// First state: Adam m, Adadelta E[g^2], AdaGrad sum of g^2, momentum velocity; null for SGD.
  float* first = nullptr;
  float* second = nullptr;   ///< second state: Adam v, Adadelta E[dx^2]; else null
  float* average = nullptr;  ///< moving average of the weights, or null
  /// [n] the weights after the update, rounded for products; or null. [CUDA only]
  Bfloat16* rounded = nullptr;
  /// Not 0: an update leaves the gradient as it is. (As wide as a pointer: no padding.)
  std::int64_t keeps_gradient = 0;
};

/// Parameters common to all update rules. A rule updates one weight; CPU and GPU share its code.
/// `states` is the number of state tensors (first, second); g is the gradient times the factor.
struct UpdateStep {
  float rate = 0;       ///< learning rate, with the factor that the rule documents
  float smoothing = 0;  ///< moving average: average += smoothing (value - average); 0: off
  /// [1], as clip() writes it; null: 1. With NaN an update zeroes the gradients and changes nothing
  /// else.
  const float* gradient_factor = nullptr;
};

/// The factor for gradients whose squares sum to `squares`: their norm times `scale` is at most
/// `limit` afterwards; limit 0: any. NaN if that norm is not finite.
NMT_HOST_DEVICE float clipping_factor(double squares, double scale, double limit) {
  const double norm = std::sqrt(squares) * scale;
  if (!(norm - norm == 0.0)) return NAN;
  return static_cast<float>(scale * (limit > 0 && norm > limit ? limit / norm : 1.0));
}

/// The square root and a / b; in CUDA threads with a relative error below 4e-7, a number below the
/// normal floats counting as 0.
NMT_HOST_DEVICE float root(float x) {
#if NMT_DEVICE_MATH
  return math::device::square_root(x);
#else
  return std::sqrt(x);
#endif
}
NMT_HOST_DEVICE float quotient(float a, float b) {
#if NMT_DEVICE_MATH
  return a * math::device::reciprocal(b);
#else
  return a / b;
#endif
}

/// Adam (Kingma & Ba 2015, algorithm 1, with the step's bias correction folded into `rate`) or
/// AdamW (Loshchilov & Hutter 2019).
struct AdamStep : UpdateStep {  // rate: learning rate * sqrt(1-beta2^t) / (1-beta1^t)
  static constexpr int states = 2;
  float epsilon = 0;  ///< times sqrt(1-beta2^t)
  float beta1 = 0.9f, beta2 = 0.999f;
  float decay = 0;  ///< AdamW: learning rate * weight decay
  NMT_HOST_DEVICE void operator()(float g, float& value, float& first, float& second) const {
    const float m = beta1 * first + (1.0f - beta1) * g;
    const float v = beta2 * second + (1.0f - beta2) * g * g;
    first = m;
    second = v;
    value -= quotient(rate * m, root(v) + epsilon) + decay * value;
  }
};

/// Adadelta (Zeiler 2012, algorithm 1); the paper's learning rate is 1.
struct AdadeltaStep : UpdateStep {
  static constexpr int states = 2;
  float rho = 0.95f, epsilon = 1e-6f;
  NMT_HOST_DEVICE void operator()(float g, float& value, float& first, float& second) const {
    const float gradients = rho * first + (1.0f - rho) * g * g;
    const float dx = quotient(root(second + epsilon), root(gradients + epsilon)) * g;
    first = gradients;
    second = rho * second + (1.0f - rho) * dx * dx;
    value -= rate * dx;
  }
};

/// AdaGrad with a diagonal matrix (Duchi et al. 2011, figure 1).
struct AdagradStep : UpdateStep {
  static constexpr int states = 1;
  float epsilon = 1e-8f;
  NMT_HOST_DEVICE void operator()(float g, float& value, float& first, float&) const {
    const float sum = first + g * g;
    first = sum;
    value -= quotient(rate * g, root(sum) + epsilon);
  }
};

/// Stochastic gradient descent.
struct SgdStep : UpdateStep {
  static constexpr int states = 0;
  NMT_HOST_DEVICE void operator()(float g, float& value, float&, float&) const {
    value -= rate * g;
  }
};

/// SGD with classical momentum (Polyak 1964): v = momentum v + g, weight -= rate v.
struct MomentumStep : UpdateStep {
  static constexpr int states = 1;
  float momentum = 0.9f;
  NMT_HOST_DEVICE void operator()(float g, float& value, float& first, float&) const {
    const float v = momentum * first + g;
    first = v;
    value -= rate * v;
  }
};

/// sum [1] = sum of squares of all gradients, in double and in a fixed order. Here and below
/// `slices` is host memory.
NMT_KERNEL(gradient_norm_squared, const OptimizerSlice* slices, std::int64_t count, double* sum);

/// factor [1] = clipping_factor(squares [1], scale, limit).
NMT_KERNEL(clip, const double* squares, double scale, double limit, float* factor);

// Each updates states, weights and moving averages of all tensors and zeroes their gradients (but
// see OptimizerSlice::keeps_gradient) in one pass.
NMT_KERNEL(adam, const OptimizerSlice* slices, std::int64_t count, const AdamStep& step);
NMT_KERNEL(adadelta, const OptimizerSlice* slices, std::int64_t count, const AdadeltaStep& step);
NMT_KERNEL(adagrad, const OptimizerSlice* slices, std::int64_t count, const AdagradStep& step);
NMT_KERNEL(sgd, const OptimizerSlice* slices, std::int64_t count, const SgdStep& step);
NMT_KERNEL(momentum, const OptimizerSlice* slices, std::int64_t count, const MomentumStep& step);

}  // namespace nmt::kernels
