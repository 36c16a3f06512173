#pragma once

#include "kernels/recurrent/recurrence.h"

#include <cstdint>

namespace nmt::kernels {

/// Row indices of a share at one step of a loop over [T,B].
struct StepOffsets {
  std::int64_t position;  ///< in the sentence
  std::int64_t row;       ///< first row in [T,B]
  std::int64_t at;        ///< first row in the records
  /// First row of the previous step in states [T,B,H]; -1: the initial states.
  std::int64_t previous;
};
/// Offsets of step i of a Recurrence or Transition for the share that begins at row `begin`.
template <class Loop>
StepOffsets step_offsets(const Loop& a, std::int64_t i, std::int64_t begin) {
  const std::int64_t t = a.reverse ? a.steps - 1 - i : i, before = a.reverse ? t + 1 : t - 1;
  return {a.position + t, t * a.batch + begin, (a.keep ? t * a.batch : 0) + begin,
          i == 0 ? -1 : before * a.batch + begin};
}

/// A step's rows, its input and its mask; x: [T,B,inputs*H] or null. Step: UnitStep or
/// cuda::UnitSteps.
template <class Step, class Loop>
Step begin_step(const Loop& a, const StepOffsets& at, const Cell& cell, const float* x,
                std::int64_t rows) {
  Step step;
  step.rows = rows;
  step.stride = a.reverse ? -a.batch : a.batch;
  step.x = x ? x + at.row * cell.unit->inputs * cell.width : nullptr;
  step.mask = a.mask ? a.mask + at.row : nullptr;
  return step;
}

/// State vector p [rows,H] before a step, for the share that begins at `begin`.
template <class Loop>
const float* state_before(const Loop& a, const StepOffsets& at, int p, std::int64_t begin,
                          std::int64_t width) {
  return at.previous < 0 ? a.initial[p] + begin * width : a.states[p] + at.previous * width;
}

}  // namespace nmt::kernels
