// Copies rounded for products: what kernels write beside or instead of float32.

#include "kernels/recurrent/transition.h"
#include "tests/cuda/recurrent/copies.h"
#include "tests/cuda/recurrent/loop.h"

#include <cstdlib>
#include <string_view>

namespace nmt::test {
namespace {

using namespace nmt::kernels;

/// Which copies a run has. `beside`: gradients of projections also in float32.
enum class Copied { nothing, all, beside };

Results recurrence(Parity& p, const CellSizes& c, const RecurrenceSizes& r, Copied copied) {
  const Unit& unit = *c.unit;
  p.sizes("{}; steps {} batch {} reverse {}", c.text(), r.steps, r.batch, r.reverse);
  p.rng() = Rng(7);
  const std::int64_t n = r.steps * r.batch, h = c.width;
  const bool copies = copied != Copied::nothing, beside = copied == Copied::beside;
  const BothCell cell(p, c, n, r.batch);
  const Projections x(p, n * unit.inputs * h, copies && unit.late == 0 && !beside);
  const auto dh = p.floats(n * h), mask = sentence_mask(p, r.steps, r.batch, 1 + r.steps / 4);
  const BothStates initial(p, unit.states, r.batch * h), states(p, unit.states, n * h),
      dinitial(p, unit.states, r.batch * h);
  const CellCopies of_cell(p, unit, n, h, copies, beside || unit.late > 0);
  const MaybeRounded of_states(p, copies ? n * h : 0);
  CudaDevice device(p.device_index(), Precision::bfloat16);
  if (r.persistent) device.set_persistent(PersistentUse::on, r.max_channels);
  const Cuda on = device.handle();
  p.cuda().device->synchronize();
  Recurrence a;
  a.cell = cell.cell(on);
  a.steps = r.steps;
  a.batch = r.batch;
  a.reverse = r.reverse;
  a.x = x.plain(on);
  a.x_rounded = x.rounded(on);
  a.mask = r.mask ? mask(on) : nullptr;
  initial.set(on, a.initial);
  states.set(on, a.states);
  a.states_rounded = of_states(on);
  a.record = cell.record(on);
  of_cell.set(on, a.record);
  const auto scratch = p.scratch(0, recurrence_scratch(on, a));
  for (const bool backward : {false, true}) {
    const std::string why = why_not_persistent(on, shape_of(a.cell), r.batch, backward);
    if (r.persistent) {
      EXPECT_EQ(why, "");
    }
  }
  r.choose(device, RecurrenceSizes::Passes::forward);
  recurrence_forward(on, a);
  RecurrenceGradient g;
  g.dh = dh(on);
  dinitial.set(on, g.dinitial);
  g.cell = cell.gradient(on);
  of_cell.set(on, g.cell);
  g.scratch = scratch(on);
  r.choose(device, RecurrenceSizes::Passes::backward);
  recurrence_backward(on, a, g);
  Results found(on);
  found.add(unit, n, r.batch, h, a.states, g.dinitial);
  found.add_rounded("rounded states", n * h, a.states[0], a.states_rounded);
  found.add("cell", unit, n, h, a.record, g.cell);
  return found;
}

void same_bits(Parity& p, const CellSizes& c, const RecurrenceSizes& r) {
  const Results plain = recurrence(p, c, r, Copied::nothing);
  const std::string text = fmt::format("{} with {} steps", c.text(), r.steps);
  plain.expect_equal(recurrence(p, c, r, Copied::all), 0, text);
  if (c.unit->has_recurrent_product() && c.unit->late == 0)
    plain.expect_equal(recurrence(p, c, r, Copied::beside), 0, text + ", beside float32");
}

void transitions(Parity& p, const CellSizes& c, std::int64_t steps, bool reverse) {
  const Unit& unit = *c.unit;
  constexpr std::int64_t batch = 3;
  const std::int64_t n = steps * batch, h = c.width;
  const auto run = [&](bool copies) {
    p.sizes("{}; steps {} reverse {} copies {}", c.text(), steps, reverse, copies);
    p.rng() = Rng(7);
    const BothCell lower(p, c, n, batch), higher(p, c, n, batch);
    const bool rounded = copies && unit.late == 0;
    const Projections x(p, n * unit.inputs * h, rounded), higher_x(p, n * unit.inputs * h, rounded);
    const auto dh = p.floats(n * h), mask = sentence_mask(p, steps, batch);
    const BothStates initial(p, unit.states, batch * h), states(p, unit.states, n * h),
        middle(p, unit.states, n * h), dinitial(p, unit.states, batch * h);
    const CellCopies of_lower(p, unit, n, h, copies, unit.late > 0),
        of_higher(p, unit, n, h, copies, unit.late > 0);
    const MaybeRounded of_states(p, copies ? n * h : 0),
        of_middle(p, copies && unit.has_recurrent_product() ? n * h : 0);
    CudaDevice device(p.device_index(), Precision::bfloat16);
    const Cuda on = device.handle();
    p.cuda().device->synchronize();
    Transition a;
    a.lower = lower.cell(on);
    a.higher = higher.cell(on);
    a.steps = steps;
    a.batch = batch;
    a.reverse = reverse;
    a.x = x.plain(on);
    a.x_rounded = x.rounded(on);
    a.higher_x = higher_x.plain(on);
    a.higher_x_rounded = higher_x.rounded(on);
    a.mask = mask(on);
    initial.set(on, a.initial);
    states.set(on, a.states);
    middle.set(on, a.middle);
    a.states_rounded = of_states(on);
    a.middle_rounded = of_middle(on);
    a.lower_record = lower.record(on);
    a.higher_record = higher.record(on);
    of_lower.set(on, a.lower_record);
    of_higher.set(on, a.higher_record);
    const auto scratch = p.scratch(0, transition_scratch(on, a));
    transition_forward(on, a);
    TransitionGradient g;
    g.dh = dh(on);
    dinitial.set(on, g.dinitial);
    g.lower = lower.gradient(on);
    g.higher = higher.gradient(on);
    of_lower.set(on, g.lower);
    of_higher.set(on, g.higher);
    g.scratch = scratch(on);
    transition_backward(on, a, g);
    Results found(on);
    found.add(unit, n, batch, h, a.states, g.dinitial);
    found.add_rounded("rounded states", n * h, a.states[0], a.states_rounded);
    found.add_rounded("rounded middle", n * h, a.middle[0], a.middle_rounded);
    found.add("lower", unit, n, h, a.lower_record, g.lower);
    found.add("higher", unit, n, h, a.higher_record, g.higher);
    return found;
  };
  run(false).expect_equal(run(true), 0, c.text());
}

/// Persistent kernels on tensor cores: the same bits with copies and without, and close to a
/// product and a step at a time.
void persistent(Parity& p, const CellSizes& c, RecurrenceSizes r) {
  r.persistent = true;
  const Results found = recurrence(p, c, r, Copied::nothing);
  if (c.width % 8 == 0 && c.groups == 1 && !c.dropout) same_bits(p, c, r);
  r.persistent = false;
  // A state between two bfloat16 numbers may be rounded to either.
  recurrence(p, c, r, Copied::nothing).expect_equal(found, 1e-2, c.text());
}

}  // namespace

std::vector<ParityRow> rounded_parity() {
  return {
      {"recurrence_rounded",
       [](Parity& p) {
         for (const Unit& unit : units()) {
           for (const bool reverse : {false, true})
             same_bits(p, {.unit = &unit, .width = 24},
                       {.steps = 5, .batch = 3, .reverse = reverse});
           if (unit.has_recurrent_product())
             same_bits(p, {.unit = &unit, .width = 16, .normal = true}, {.steps = 3, .batch = 4});
           else  // in chunks, in units that allow it
             for (const bool reverse : {false, true})
               same_bits(p, {.unit = &unit, .width = 8},
                         {.steps = 150, .batch = 5, .reverse = reverse});
         }
       }},
      {"transition_rounded",
       [](Parity& p) {
         for (const Unit& unit : units())
           for (const bool reverse : {false, true})
             transitions(p, {.unit = &unit, .width = 24}, 4, reverse);
       }},
      {"persistent_bfloat16",
       [](Parity& p) {
         for (const Unit& unit : units()) {
           if (!unit.has_recurrent_product()) continue;
           persistent(p, {.unit = &unit, .width = 40}, {.steps = 4, .batch = 3, .max_channels = 7});
           persistent(p, {.unit = &unit, .width = 33, .normal = true},
                      {.steps = 3, .batch = 5, .reverse = true, .max_channels = 7});
           persistent(p, {.unit = &unit, .width = 24, .normal = true},
                      {.steps = 3, .batch = 3, .max_channels = 8});
           persistent(p, {.unit = &unit, .width = 48, .groups = 3, .dropout = true},
                      {.steps = 3, .batch = 4});
           const std::string_view name = unit.name;
           if (name != "gru" && name != "lstm") continue;
           // Several tiles of columns, more than half of a tile of rows.
           persistent(p, {.unit = &unit, .width = 96}, {.steps = 2, .batch = 21});
           // Backward more k than are on their way at a time, on an emulated device where they fit.
           if (name != "lstm") continue;
           setenv("NMT_EMULATED_MULTIPROCESSORS", "8", 1);
           persistent(p, {.unit = &unit, .width = 264}, {.steps = 2, .batch = 2});
           unsetenv("NMT_EMULATED_MULTIPROCESSORS");
         }
       }},
      {"persistent_forward_or_backward_bfloat16",
       [](Parity& p) {
         using Passes = RecurrenceSizes::Passes;
         for (const Unit& unit : units()) {
           if (!unit.has_recurrent_product()) continue;
           for (const Passes passes : {Passes::forward, Passes::backward}) {
             for (const bool normal : {false, true})
               persistent(p, {.unit = &unit, .width = 24, .normal = normal},
                          {.steps = 3,
                           .batch = 3,
                           .reverse = normal,
                           .max_channels = 8,
                           .passes = passes});
             persistent(p, {.unit = &unit, .width = 48, .groups = 3, .dropout = true},
                        {.steps = 3, .batch = 4, .passes = passes});
           }
         }
       }},
  };
}

}  // namespace nmt::test
