#include "cuda/kernels/recurrent/cell.h"
#include "cuda/runtime/launch.h"
#include "kernels/pointwise.h"
#include "kernels/recurrent/step_offsets.h"
#include "kernels/recurrent/transition.h"

#include <algorithm>

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

UnitSteps lower_step(const Transition& a, std::int64_t i) {
  const StepOffsets offsets = step_offsets(a, i, 0);
  const std::int64_t h = a.lower.width;
  UnitSteps step = begin_step<UnitSteps>(a, offsets, a.lower, a.x, a.batch);
  step.position = offsets.position;
  for (int p = 0; p < a.lower.unit->states; ++p) {
    step.previous[p] = state_before(a, offsets, p, 0, h);
    step.next[p] = a.middle[p] + offsets.at * h;
  }
  step.x_rounded = part(a.x_rounded, offsets.row, a.lower.unit->inputs * h);
  if (offsets.previous >= 0) step.previous_rounded = part(a.states_rounded, offsets.previous, h);
  step.next_rounded = part(a.middle_rounded, offsets.at, h);
  set_norm(a.x_norm, step);
  return step;
}

UnitSteps higher_step(const Transition& a, std::int64_t i) {
  const StepOffsets offsets = step_offsets(a, i, 0);
  const std::int64_t h = a.higher.width;
  UnitSteps step = begin_step<UnitSteps>(a, offsets, a.higher, a.higher_x, a.batch);
  step.position = offsets.position;
  for (int p = 0; p < a.higher.unit->states; ++p) {
    step.previous[p] = a.middle[p] + offsets.at * h;
    step.next[p] = a.states[p] + offsets.row * h;
  }
  step.x_rounded = part(a.higher_x_rounded, offsets.row, a.higher.unit->inputs * h);
  step.previous_rounded = part(a.middle_rounded, offsets.at, h);
  step.next_rounded = part(a.states_rounded, offsets.row, h);
  set_norm(a.higher_x_norm, step);
  return step;
}

// The first row of the first step in [T,B].
std::int64_t first_row(const Transition& a) {
  return step_offsets(a, 0, 0).row;
}

// All steps of both units, for a unit without recurrent products.
UnitChain chain_of(const Transition& a) {
  NMT_CHECK(!a.middle_rounded, "unit {}: no product reads its states", a.lower.unit->name);
  UnitChain chain{lower_step(a, 0), higher_step(a, 0), a.keep};
  const std::int64_t record_row = step_offsets(a, 0, 0).at;
  set_parameters(a.lower, a.lower_record, record_row, chain.lower);
  set_parameters(a.higher, a.higher_record, record_row, chain.higher);
  for (UnitSteps* step : {&chain.lower, &chain.higher}) {
    step->steps = a.steps;
    step->stride = a.reverse ? -a.batch : a.batch;
  }
  return chain;
}

}  // namespace

void transition_forward(const Cuda& cuda, const Transition& a) {
  if (a.steps > 0 && !a.lower.unit->has_recurrent_product())
    return chain_kernels(*a.lower.unit).forward(cuda, chain_of(a));
  for (std::int64_t i = 0; i < a.steps; ++i) {
    const std::int64_t record_row = step_offsets(a, i, 0).at;
    cell_forward(cuda, a.lower, a.lower_record, record_row, lower_step(a, i));
    cell_forward(cuda, a.higher, a.higher_record, record_row, higher_step(a, i));
  }
}

std::int64_t transition_scratch(const Cuda&, const Transition& a) {
  return cell_scratch(a.lower, a.steps, a.batch) + cell_scratch(a.higher, a.steps, a.batch) +
         a.batch * cell_space(a.lower);
}

namespace {

void chain_backward(const Cuda& cuda, const Transition& a, const TransitionGradient& g,
                    const CellScratch& lower, const CellScratch& higher) {
  const std::int64_t row = first_row(a);
  UnitStepsGradient dlower = step_gradient(a.lower, g.lower, row, lower),
                    dhigher = step_gradient(a.higher, g.higher, row, higher);
  dhigher.dh = g.dh + row * a.higher.width;
  std::copy_n(g.dinitial, a.lower.unit->states, dlower.carry);
  dlower.from_zero = 1;
  chain_kernels(*a.lower.unit).backward(cuda, chain_of(a), dlower, dhigher);
}

void steps_backward(const Cuda& cuda, const Transition& a, const TransitionGradient& g,
                    const CellScratch& lower, const CellScratch& higher, float* temporary) {
  for (std::int64_t i = a.steps - 1; i >= 0; --i) {
    const std::int64_t row = step_offsets(a, i, 0).row;
    cell_backward(cuda, a.higher, a.higher_record, g.higher, row, higher_step(a, i),
                  g.dh + row * a.higher.width, g.dinitial, higher, temporary);
    cell_backward(cuda, a.lower, a.lower_record, g.lower, row, lower_step(a, i), nullptr,
                  g.dinitial, lower, temporary);
  }
}

}  // namespace

void transition_backward(const Cuda& cuda, const Transition& a, const TransitionGradient& g) {
  float* temporary = g.scratch;
  const CellScratch lower = start_cell(cuda, a.lower, a.steps, a.batch, &temporary);
  const CellScratch higher = start_cell(cuda, a.higher, a.steps, a.batch, &temporary);
  if (a.steps > 0 && !a.lower.unit->has_recurrent_product()) {
    chain_backward(cuda, a, g, lower, higher);
  } else {
    for (int p = 0; p < a.lower.unit->states; ++p)
      fill(cuda, g.dinitial[p], a.batch * a.lower.width, 0.0f);
    steps_backward(cuda, a, g, lower, higher, temporary);
  }
  finish_cell(cuda, a.lower, a.steps, a.batch, a.position, lower, g.lower);
  finish_cell(cuda, a.higher, a.steps, a.batch, a.position, higher, g.higher);
}

}  // namespace nmt::kernels
