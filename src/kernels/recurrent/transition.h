#pragma once

#include "kernels/recurrent/recurrence.h"

#include <cstdint>

namespace nmt::kernels {

/// A recurrence with two units per step; the second reads a given sequence instead of attention:
///   s = lower(h', x);  h = higher(s, g)
/// It is the backward pass of the context-aware encoder, with g the forward states (Zhang et al.,
/// ATR, EMNLP 2018, section 4.1), and an upper layer of the context-aware decoder, with g the
/// attention context (Zhang & Sennrich, ACL 2019, section 6.3). All projections of x and g are
/// computed outside, for all steps at once. On the CPU each thread runs its share of the sentences
/// through all steps.
struct Transition {
  Cell lower, higher;         ///< the same unit, width and groups
  std::int64_t steps = 0;     ///< T
  std::int64_t batch = 0;     ///< B
  bool reverse = false;       ///< from the last step to the first
  std::int64_t position = 0;  ///< of step 0 in the sentence
  bool keep = true;           ///< records hold all steps (training) or only one (inference)
  /// [T,B,inputs*H] the lower unit's projections, bias and normalization included.
  const float* x = nullptr;
  const float* higher_x = nullptr;     ///< [T,B,inputs*H] the higher unit's
  const float* mask = nullptr;         ///< [T,B] or null; 0: the states pass through both units
  const float* initial[max_states]{};  ///< [B,H]
  float* states[max_states]{};         ///< [T,B,H] the higher unit's, written
  float* middle[max_states]{};         ///< record [.., B,H] the lower unit's
  const Bfloat16 *x_rounded = nullptr, *higher_x_rounded = nullptr;  ///< instead of x and higher_x
  Bfloat16 *states_rounded = nullptr, *middle_rounded = nullptr;     ///< of states[0] and middle[0]
  PendingNorm x_norm, higher_x_norm;  ///< of both or none, with T = 1
  CellRecord lower_record, higher_record;
};

struct TransitionGradient {
  const float* dh = nullptr;      ///< [T,B,H] gradient of states[0]
  float* dinitial[max_states]{};  ///< [B,H], written
  CellGradient lower;             ///< dx: gradient of x
  CellGradient higher;            ///< dx: gradient of higher_x
  float* scratch = nullptr;       ///< transition_scratch() floats
};

void transition_forward(const Cpu&, const Transition&);
void transition_forward(const Cuda&, const Transition&);
void transition_backward(const Cpu&, const Transition&, const TransitionGradient&);
void transition_backward(const Cuda&, const Transition&, const TransitionGradient&);
std::int64_t transition_scratch(const Cpu&, const Transition&);
std::int64_t transition_scratch(const Cuda&, const Transition&);

}  // namespace nmt::kernels
