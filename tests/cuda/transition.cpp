#include "kernels/recurrent/transition.h"

#include "tests/cuda/cells.h"

namespace nmt::test {
namespace {

using namespace nmt::kernels;

void check(Parity& p, const CellSizes& c, std::int64_t steps, std::int64_t batch, bool reverse,
           bool backward) {
  const Unit& unit = *c.unit;
  p.sizes("{}; steps {} batch {} reverse {} backward {}", c.text(), steps, batch, reverse,
          backward);
  const std::int64_t n = steps * batch, h = c.width, kept = backward ? n : batch;
  const BothCell lower(p, c, kept, batch), higher(p, c, kept, batch);
  const auto x = p.floats(n * unit.inputs * h), higher_x = p.floats(n * unit.inputs * h),
             dh = p.floats(n * h), mask = sentence_mask(p, steps, batch);
  const BothStates initial(p, unit.states, batch * h), states(p, unit.states, n * h),
      middle(p, unit.states, kept * h), dinitial(p, unit.states, batch * h);
  const auto arguments = [&](const auto& on) {
    Transition a;
    a.lower = lower.cell(on);
    a.higher = higher.cell(on);
    a.steps = steps;
    a.batch = batch;
    a.reverse = reverse;
    a.keep = backward;
    a.x = x(on);
    a.higher_x = higher_x(on);
    a.mask = backward ? mask(on) : nullptr;
    initial.set(on, a.initial);
    states.set(on, a.states);
    middle.set(on, a.middle);
    a.lower_record = lower.record(on);
    a.higher_record = higher.record(on);
    return a;
  };
  const auto scratch =
      p.scratch_of([&](const auto& on) { return transition_scratch(on, arguments(on)); });
  p.run(
      [&](const auto& on) {
        const Transition a = arguments(on);
        transition_forward(on, a);
        if (!backward) return;
        TransitionGradient g;
        g.dh = dh(on);
        dinitial.set(on, g.dinitial);
        g.lower = lower.gradient(on);
        g.higher = higher.gradient(on);
        g.scratch = scratch(on);
        transition_backward(on, a, g);
      },
      recurrence_tolerance);
}

}  // namespace

std::vector<ParityRow> transition_parity() {
  return {
      {"transition",
       [](Parity& p) {
         each_cell([&](const CellSizes& c) {
           for (const bool reverse : {false, true}) check(p, c, 4, 3, reverse, true);
           for (const std::int64_t steps : {1, 3}) check(p, c, steps, 3, false, true);
           check(p, c, 2, 3, false, false);
           check(p, c, 1, 3, false, false);
           check(p, c, 3, 3, true, false);
         });
       }},
  };
}

}  // namespace nmt::test
