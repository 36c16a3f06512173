#include "kernels/recurrent/recurrence.h"

#include "tests/cuda/cells.h"

#include <string_view>

namespace nmt::test {
namespace {

using namespace nmt::kernels;

struct RecurrenceSizes {
  std::int64_t steps, batch;
  bool reverse = false, mask = true, backward = true;
  std::int64_t position = 0;
};

void check(Parity& p, const CellSizes& c, const RecurrenceSizes& r) {
  const Unit& unit = *c.unit;
  p.sizes("{}; steps {} batch {} reverse {} mask {} backward {} position {}", c.text(), r.steps,
          r.batch, r.reverse, r.mask, r.backward, r.position);
  const std::int64_t n = r.steps * r.batch, h = c.width;
  const BothCell cell(p, c, r.backward ? n : r.batch, r.batch);
  const auto x = p.floats(n * unit.inputs * h), dh = p.floats(n * h),
             mask = sentence_mask(p, r.steps, r.batch);
  const BothStates initial(p, unit.states, r.batch * h), states(p, unit.states, n * h),
      dinitial(p, unit.states, r.batch * h);
  const auto arguments = [&](const auto& on) {
    Recurrence a;
    a.cell = cell.cell(on);
    a.steps = r.steps;
    a.batch = r.batch;
    a.reverse = r.reverse;
    a.position = r.position;
    a.keep = r.backward;
    a.x = x(on);
    a.mask = r.mask ? mask(on) : nullptr;
    initial.set(on, a.initial);
    states.set(on, a.states);
    a.record = cell.record(on);
    return a;
  };
  const auto scratch =
      p.scratch_of([&](const auto& on) { return recurrence_scratch(on, arguments(on)); });
  p.run(
      [&](const auto& on) {
        const Recurrence a = arguments(on);
        recurrence_forward(on, a);
        if (!r.backward) return;
        RecurrenceGradient g;
        g.dh = dh(on);
        dinitial.set(on, g.dinitial);
        g.cell = cell.gradient(on);
        g.scratch = scratch(on);
        recurrence_backward(on, a, g);
      },
      recurrence_tolerance);
}

}  // namespace

std::vector<ParityRow> recurrence_parity() {
  return {
      {"recurrence",
       [](Parity& p) {
         each_cell([&](const CellSizes& c) {
           for (const bool reverse : {false, true})
             check(p, c, {.steps = 6, .batch = 5, .reverse = reverse});
         });
       }},
      {"recurrence_decoding",
       [](Parity& p) {
         each_cell([&](const CellSizes& c) {
           check(p, c, {.steps = 1, .batch = 5, .mask = false, .backward = false, .position = 1});
           check(p, c, {.steps = 3, .batch = 3, .mask = false, .backward = false, .position = 9});
         });
       }},
      {"recurrence_sizes",
       [](Parity& p) {
         for (const Unit& unit : units()) {
           for (const std::int64_t width : {1, 3, 257})
             check(p, {.unit = &unit, .width = width, .positions = 2},
                   {.steps = 2, .batch = 3, .mask = false, .position = 4});
           for (const std::int64_t batch : {1, 31})
             check(p, {.unit = &unit, .width = 3}, {.steps = 5, .batch = batch, .position = 1});
           check(p, {.unit = &unit, .width = 3}, {.steps = 33, .batch = 2, .reverse = true});
           if (!unit.is_matrix()) continue;
           check(p, {.unit = &unit, .width = 65, .normal = true, .positions = 2},
                 {.steps = 2, .batch = 3});
           if (std::string_view(unit.name) == "gru")  // more channels than threads
             check(p, {.unit = &unit, .width = 520, .normal = true}, {.steps = 2, .batch = 1});
         }
       }},
  };
}

}  // namespace nmt::test
