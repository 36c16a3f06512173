#pragma once

#include "core/rng.h"
#include "kernels/backend.h"

#include <cmath>
#include <cstdint>

namespace nmt::kernels {

/// One parameter tensor in an update, all pointers of n floats.
struct OptimizerSlice {
  std::int64_t n = 0;
  float* value = nullptr;
  float* gradient = nullptr;  ///< set to zero after use
  /// Adam m; Adadelta E[g^2]; AdaGrad's sum of g^2; the velocity of SGD; null where a rule has no
  /// state.
  float* first = nullptr;
  float* second = nullptr;   ///< Adam v; Adadelta E[dx^2]; else null
  float* average = nullptr;  ///< moving average of the weights, or null
};

/// What every update rule has. A rule is a step of one weight, the same lines on every device:
/// `states` says how many of (first, second) it keeps; g is the gradient times gradient_scale.
struct UpdateStep {
  float rate = 0;            ///< the learning rate, times the rule's own factor where it says so
  float gradient_scale = 1;  ///< clipping and accumulation
  float smoothing = 0;       ///< moving average: average += smoothing (value - average); 0: off
};

/// Adam (Kingma & Ba 2015, algorithm 1, with the step's bias correction folded into `rate`) or
/// AdamW (Loshchilov & Hutter 2019).
struct AdamStep : UpdateStep {  // rate: learning rate * sqrt(1-beta2^t) / (1-beta1^t)
  static constexpr int states = 2;
  float epsilon = 0;  ///< times sqrt(1-beta2^t)
  float beta1 = 0.9f, beta2 = 0.999f;
  float decay = 0;  ///< AdamW: learning rate * weight decay, subtracted from the weight itself
  NMT_HOST_DEVICE void operator()(float g, float& value, float& first, float& second) const {
    const float m = beta1 * first + (1.0f - beta1) * g;
    const float v = beta2 * second + (1.0f - beta2) * g * g;
    first = m;
    second = v;
    value -= rate * m / (std::sqrt(v) + epsilon) + decay * value;
  }
};

/// Adadelta (Zeiler 2012, algorithm 1); its rate is 1 there.
struct AdadeltaStep : UpdateStep {
  static constexpr int states = 2;
  float rho = 0.95f, epsilon = 1e-6f;
  NMT_HOST_DEVICE void operator()(float g, float& value, float& first, float& second) const {
    const float gradients = rho * first + (1.0f - rho) * g * g;
    const float dx = std::sqrt(second + epsilon) / std::sqrt(gradients + epsilon) * g;
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
    value -= rate * g / (std::sqrt(sum) + epsilon);
  }
};

/// Stochastic gradient descent.
struct SgdStep : UpdateStep {
  static constexpr int states = 0;
  NMT_HOST_DEVICE void operator()(float g, float& value, float&, float&) const {
    value -= rate * g;
  }
};

/// The same with classical momentum (Polyak 1964): v = momentum v + g; the weight moves by -rate v.
struct MomentumStep : UpdateStep {
  static constexpr int states = 1;
  float momentum = 0.9f;
  NMT_HOST_DEVICE void operator()(float g, float& value, float& first, float&) const {
    const float v = momentum * first + g;
    first = v;
    value -= rate * v;
  }
};

/// sum [1] = the squares of all gradients, added up in double and in a fixed order. `slices` lie on
/// the host here and below.
NMT_KERNEL(gradient_norm_squared, const OptimizerSlice* slices, std::int64_t count, double* sum);

// One pass over all tensors: states, weights, moving average, gradient reset.
NMT_KERNEL(adam, const OptimizerSlice* slices, std::int64_t count, const AdamStep& step);
NMT_KERNEL(adadelta, const OptimizerSlice* slices, std::int64_t count, const AdadeltaStep& step);
NMT_KERNEL(adagrad, const OptimizerSlice* slices, std::int64_t count, const AdagradStep& step);
NMT_KERNEL(sgd, const OptimizerSlice* slices, std::int64_t count, const SgdStep& step);
NMT_KERNEL(momentum, const OptimizerSlice* slices, std::int64_t count, const MomentumStep& step);

}  // namespace nmt::kernels
