#pragma once

#include "autograd/ops/attention.h"
#include "autograd/ops/recurrent.h"

#include <cstdint>
#include <vector>

namespace nmt::ops {

// The conditional layer: a recurrence with attention between its two units.

/// The parameters of a conditional layer (kernels/recurrent/conditional.h).
struct Conditional {
  Cell lower, higher;
  AttentionShape attention;
  Parameter* query = nullptr;  ///< [H,A]
  /// [M, inputs*H], or with the higher cell's groups [K, M/K, inputs*H/K].
  Parameter* context = nullptr;
  Parameter* context_bias = nullptr;  ///< [inputs*H]
  Parameter* context_gain = nullptr;  ///< [inputs*H]
  Parameter* context_norm_bias = nullptr;
};
struct ConditionalResult {
  std::vector<Var> states;  ///< [T,B,H] per state vector; gradients flow only through the first
  Attended attended;
};
ConditionalResult conditional(Tape& tape, const Conditional& layer, const Memory& memory,
                              const Projections& projections, const std::vector<Var>& initial,
                              const Tensor& sentence, std::int64_t position = 0);

}  // namespace nmt::ops
