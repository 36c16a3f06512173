#pragma once

#include <cstdint>

#include "nmt/kernels/backend.h"

namespace nmt::kernels {

/// One parameter tensor in an update, all pointers of n floats.
struct OptimizerSlice {
  std::int64_t n = 0;
  float* value = nullptr;
  float* gradient = nullptr;  ///< set to zero after use
  float* first = nullptr;     ///< Adam m
  float* second = nullptr;    ///< Adam v
  float* average = nullptr;   ///< moving average of the weights, or null
};

/// Adam (Kingma & Ba 2015, algorithm 1, with the step's bias correction folded into `rate`) or AdamW (Loshchilov & Hutter 2019).
struct AdamStep {
  float rate = 0;            ///< learning rate * sqrt(1-beta2^t) / (1-beta1^t)
  float epsilon = 0;         ///< times sqrt(1-beta2^t)
  float beta1 = 0.9f, beta2 = 0.999f;
  float decay = 0;           ///< AdamW: learning rate * weight decay, subtracted from the weight itself
  float gradient_scale = 1;  ///< clipping and accumulation
  float smoothing = 0;       ///< moving average: average += smoothing (value - average); 0: off
};

/// Sum of squares over all gradients, in double and in a fixed order.
double gradient_norm_squared(const Cpu&, const OptimizerSlice* slices, std::int64_t count);
double gradient_norm_squared(const Cuda&, const OptimizerSlice* slices, std::int64_t count);
/// One pass over all tensors: moments, weights, moving average, gradient reset.
NMT_KERNEL(adam, const OptimizerSlice* slices, std::int64_t count, const AdamStep& step);

}  // namespace nmt::kernels
