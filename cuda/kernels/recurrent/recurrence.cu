#include "cuda/kernels/recurrent/chunks.h"
#include "cuda/kernels/recurrent/persistent/persistent.h"
#include "cuda/runtime/launch.h"
#include "kernels/pointwise.h"
#include "kernels/recurrent/recurrence.h"
#include "kernels/recurrent/step_offsets.h"

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

// The `steps` steps from number i on, `stride` rows of [T,B] apart.
UnitSteps unit_steps(const Recurrence& a, std::int64_t i, std::int64_t steps) {
  const std::int64_t h = a.cell.width;
  const StepOffsets offsets = step_offsets(a, i, 0);
  UnitSteps step = begin_step<UnitSteps>(a, offsets, a.cell, a.x, a.batch);
  step.x_rounded = part(a.x_rounded, offsets.row, a.cell.unit->inputs * h);
  step.steps = steps;
  step.stride = a.reverse ? -a.batch : a.batch;
  step.position = offsets.position;
  for (int p = 0; p < a.cell.unit->states; ++p) {
    step.previous[p] = state_before(a, offsets, p, 0, h);
    step.next[p] = a.states[p] + offsets.row * h;
  }
  step.next_rounded = part(a.states_rounded, offsets.row, h);
  set_norm(a.x_norm, step);
  if (offsets.previous >= 0) step.previous_rounded = part(a.states_rounded, offsets.previous, h);
  return step;
}

// Steps per launch: a unit without a recurrent product, undivided, computes all of them at once.
std::int64_t steps_at_once(const Recurrence& a) {
  return a.cell.unit->has_recurrent_product() ? 1 : a.steps;
}

}  // namespace

void recurrence_forward(const Cuda& cuda, const Recurrence& a) {
  if (runs_persistently(cuda, a, false))
    return persistent_forward(cuda, a, unit_steps(a, 0, a.steps));
  if (const Chunks chunks = chunks_of(cuda, a); chunks.count > 1)
    return chunks_forward(cuda, a, chunks, unit_steps(a, 0, a.steps));
  const std::int64_t at_once = steps_at_once(a);
  for (std::int64_t i = 0; i < a.steps; i += at_once)
    cell_forward(cuda, a.cell, a.record, step_offsets(a, i, 0).at, unit_steps(a, i, at_once));
}

std::int64_t recurrence_scratch(const Cuda& cuda, const Recurrence& a) {
  if (const Chunks chunks = chunks_of(cuda, a); chunks.count > 1) return chunks_scratch(a, chunks);
  return cell_scratch(a.cell, a.steps, a.batch) + a.batch * cell_space(a.cell);
}

void recurrence_backward(const Cuda& cuda, const Recurrence& a, const RecurrenceGradient& g) {
  if (const Chunks chunks = chunks_of(cuda, a); chunks.count > 1)
    return chunks_backward(cuda, a, g, chunks, unit_steps(a, 0, a.steps));
  float* temporary = g.scratch;
  const CellScratch scratch = start_cell(cuda, a.cell, a.steps, a.batch, &temporary);
  if (runs_persistently(cuda, a, true)) {
    persistent_backward(cuda, a, g, unit_steps(a, 0, a.steps), scratch, temporary);
    return finish_cell(cuda, a.cell, a.steps, a.batch, a.position, scratch, g.cell);
  }
  const std::int64_t at_once = steps_at_once(a);
  const bool from_zero = a.steps > 0 && at_once == a.steps && !a.cell.unit->has_recurrent_product();
  for (int p = 0; p < a.cell.unit->states && !from_zero; ++p)
    fill(cuda, g.dinitial[p], a.batch * a.cell.width, 0.0f);
  for (std::int64_t i = a.steps - at_once; at_once > 0 && i >= 0; i -= at_once) {
    const std::int64_t row = step_offsets(a, i, 0).row;
    cell_backward(cuda, a.cell, a.record, g.cell, row, unit_steps(a, i, at_once),
                  g.dh + row * a.cell.width, g.dinitial, scratch, temporary, from_zero);
  }
  finish_cell(cuda, a.cell, a.steps, a.batch, a.position, scratch, g.cell);
}

}  // namespace nmt::kernels
