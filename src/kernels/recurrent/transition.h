#pragma once

#include "kernels/recurrent/recurrence.h"

#include <cstdint>

namespace nmt::kernels {

/// A recurrence of two units a step, the second of which reads a given sequence instead of
/// attention:
///   s = lower(h', x);  h = higher(s, g)
/// It is the backward pass of the context-aware encoder, with g the forward states (Zhang et al.,
/// ATR, EMNLP 2018, section 4.1), and an upper layer of the context-aware decoder, with g the
/// attention's context (Zhang & Sennrich, ACL 2019, section 6.3). All projections of x and g are
/// outside, for all steps at once. On the CPU every worker takes its share of the sentences through
/// all the steps.
struct Transition {
  Cell lower, higher;         ///< the same unit, width and groups
  std::int64_t steps = 0;     ///< T
  std::int64_t batch = 0;     ///< B
  bool reverse = false;       ///< from the last step to the first
  std::int64_t position = 0;  ///< of step 0 in its sentence
  bool keep = true;           ///< records hold all steps (training) or one (inference)
  /// [T,B,inputs*H] the lower unit's projections, bias and normalization included.
  const float* x = nullptr;
  const float* guide = nullptr;        ///< [T,B,inputs*H] the higher unit's
  const float* mask = nullptr;         ///< [T,B] or null; 0: the states pass through both units
  const float* initial[max_states]{};  ///< [B,H]
  float* states[max_states]{};         ///< [T,B,H] the higher unit's, written
  float* middle[max_states]{};         ///< record [.., B,H] the lower unit's
  CellRecord lower_record, higher_record;
};

struct TransitionGradient {
  const float* dh = nullptr;      ///< [T,B,H] gradient of states[0]
  float* dinitial[max_states]{};  ///< [B,H], written
  CellGradient lower;             ///< dx is that of x
  CellGradient higher;            ///< dx is that of guide
  float* scratch = nullptr;       ///< transition_scratch() floats
};

void transition_forward(const Cpu&, const Transition&);
void transition_forward(const Cuda&, const Transition&);
void transition_backward(const Cpu&, const Transition&, const TransitionGradient&);
void transition_backward(const Cuda&, const Transition&, const TransitionGradient&);
std::int64_t transition_scratch(const Cpu&, const Transition&);
std::int64_t transition_scratch(const Cuda&, const Transition&);

}  // namespace nmt::kernels
