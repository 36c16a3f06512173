#include "kernels/recurrent/transition.h"

#include "kernels/recurrent/rows.h"

namespace nmt::kernels {
namespace {

UnitStep lower_step(const Transition& a, const StepOffsets& at, std::int64_t begin,
                    std::int64_t rows) {
  const std::int64_t h = a.lower.width;
  UnitStep step = begin_step<UnitStep>(a, at, a.lower, a.x, rows);
  step.position = position_row(a.lower, at.position);
  for (int p = 0; p < a.lower.unit->states; ++p) {
    step.previous[p] = state_before(a, at, p, begin, h);
    step.next[p] = a.middle[p] + at.at * h;
  }
  return step;
}

UnitStep higher_step(const Transition& a, const StepOffsets& at, std::int64_t rows) {
  const std::int64_t h = a.higher.width;
  UnitStep step = begin_step<UnitStep>(a, at, a.higher, a.higher_x, rows);
  step.position = position_row(a.higher, at.position);
  for (int p = 0; p < a.higher.unit->states; ++p) {
    step.previous[p] = a.middle[p] + at.at * h;
    step.next[p] = a.states[p] + at.row * h;
  }
  return step;
}

}  // namespace

void transition_forward(const Cpu& cpu, const Transition& a) {
  const RowShares shares(cpu, a.batch);
  const RowsCpu on = shares.cpu(cpu);
  shares.run(cpu, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < a.steps; ++i) {
      const StepOffsets at = step_offsets(a, i, begin);
      cell_forward(on, a.lower, a.lower_record, at.at, lower_step(a, at, begin, end - begin));
      cell_forward(on, a.higher, a.higher_record, at.at, higher_step(a, at, end - begin));
    }
  });
}

// Per share the sums of the lower cell, then of the higher cell; then temporary space for all rows.
std::int64_t transition_scratch(const Cpu& cpu, const Transition& a) {
  return RowShares(cpu, a.batch).count * (cell_sums(a.lower) + cell_sums(a.higher)) +
         a.batch * cell_space(a.lower);
}

void transition_backward(const Cpu& cpu, const Transition& a, const TransitionGradient& g) {
  const RowShares shares(cpu, a.batch);
  const RowsCpu on = shares.cpu(cpu);
  const std::int64_t h = a.lower.width, space = cell_space(a.lower),
                     lower_sums = cell_sums(a.lower), stride = lower_sums + cell_sums(a.higher);
  std::fill_n(g.scratch, shares.count * stride, 0.0f);
  float* temporary = g.scratch + shares.count * stride;
  shares.run(cpu, [&](std::int64_t share, std::int64_t begin, std::int64_t end) {
    const std::int64_t rows = end - begin, n = rows * h;
    float* sums = g.scratch + share * stride;
    float* carry[max_states]{};
    start_carry(a.lower, g.dinitial, begin, rows, carry);
    for (std::int64_t i = a.steps - 1; i >= 0; --i) {
      const StepOffsets at = step_offsets(a, i, begin);
      add_floats(n, g.dh + at.row * h, carry[0]);
      cell_backward(on, a.higher, a.higher_record, g.higher, at.row, higher_step(a, at, rows),
                    carry, sums + lower_sums, temporary + begin * space);
      cell_backward(on, a.lower, a.lower_record, g.lower, at.row, lower_step(a, at, begin, rows),
                    carry, sums, temporary + begin * space);
    }
  });
  add_cell_sums(a.lower, g.scratch, shares.count, stride, g.lower);
  add_cell_sums(a.higher, g.scratch + lower_sums, shares.count, stride, g.higher);
}

}  // namespace nmt::kernels
