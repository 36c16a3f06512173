#include "nmt/kernels/pointwise.h"
#include "nmt/kernels/transition.h"

#include "cuda/cell.h"
#include "cuda/launch.h"

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

// Where the rows of step number i stand.
struct Place {
  std::int64_t position;  // in the sentence
  std::int64_t row;       // in [T,B]
  std::int64_t at;        // in the records
};

Place place(const Transition& a, std::int64_t i) {
  const std::int64_t t = a.reverse ? a.steps - 1 - i : i, row = t * a.batch;
  return {a.position + t, row, a.keep ? row : 0};
}

UnitSteps unit_step(const Transition& a, const Place& at, const Cell& cell, const float* x) {
  UnitSteps step;
  step.rows = a.batch;
  step.x = x + at.row * cell.unit->inputs * cell.width;
  step.position = at.position;
  step.mask = a.mask ? a.mask + at.row : nullptr;
  return step;
}

UnitSteps lower_step(const Transition& a, std::int64_t i) {
  const Place at = place(a, i);
  const std::int64_t h = a.lower.width, before = a.reverse ? at.row + a.batch : at.row - a.batch;
  UnitSteps step = unit_step(a, at, a.lower, a.x);
  for (int p = 0; p < a.lower.unit->states; ++p) {
    step.previous[p] = i == 0 ? a.initial[p] : a.states[p] + before * h;
    step.next[p] = a.middle[p] + at.at * h;
  }
  return step;
}

UnitSteps higher_step(const Transition& a, std::int64_t i) {
  const Place at = place(a, i);
  const std::int64_t h = a.higher.width;
  UnitSteps step = unit_step(a, at, a.higher, a.guide);
  for (int p = 0; p < a.higher.unit->states; ++p) {
    step.previous[p] = a.middle[p] + at.at * h;
    step.next[p] = a.states[p] + at.row * h;
  }
  return step;
}

}  // namespace

void transition_forward(const Cuda& cuda, const Transition& a) {
  for (std::int64_t i = 0; i < a.steps; ++i) {
    const std::int64_t at = place(a, i).at;
    cell_forward(cuda, a.lower, a.lower_record, at, lower_step(a, i));
    cell_forward(cuda, a.higher, a.higher_record, at, higher_step(a, i));
  }
}

std::int64_t transition_scratch(const Cuda&, const Transition& a) {
  return cell_scratch(a.lower, a.steps, a.batch) + cell_scratch(a.higher, a.steps, a.batch) +
         a.batch * cell_space(a.lower);
}

void transition_backward(const Cuda& cuda, const Transition& a, const TransitionGradient& g) {
  float* temporary = g.scratch;
  const CellScratch lower = start_cell(cuda, a.lower, a.steps, a.batch, &temporary);
  const CellScratch higher = start_cell(cuda, a.higher, a.steps, a.batch, &temporary);
  for (int p = 0; p < a.lower.unit->states; ++p) fill(cuda, g.dinitial[p], a.batch * a.lower.width, 0.0f);
  for (std::int64_t i = a.steps - 1; i >= 0; --i) {
    const std::int64_t row = place(a, i).row;
    cell_backward(cuda, a.higher, a.higher_record, g.higher, row, higher_step(a, i), g.dh + row * a.higher.width,
                  g.dinitial, higher, temporary);
    cell_backward(cuda, a.lower, a.lower_record, g.lower, row, lower_step(a, i), nullptr, g.dinitial, lower, temporary);
  }
  finish_cell(cuda, a.lower, a.steps, a.batch, a.position, lower, g.lower);
  finish_cell(cuda, a.higher, a.steps, a.batch, a.position, higher, g.higher);
}

}  // namespace nmt::kernels
