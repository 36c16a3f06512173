#pragma once

// A recurrence forward and backward on both devices.

#include "kernels/recurrent/persistent.h"
#include "tests/cuda/cells.h"

#include <gtest/gtest.h>

namespace nmt::test {

struct RecurrenceSizes {
  std::int64_t steps, batch;
  bool reverse = false, mask = true, backward = true;
  std::int64_t position = 0;
  bool persistent = false;        ///< on the device: all steps in one kernel,
  std::int64_t max_channels = 0;  ///< with so many channels of a block at most
};

inline void check(Parity& p, const CellSizes& c, const RecurrenceSizes& r) {
  using namespace kernels;
  const Unit& unit = *c.unit;
  p.sizes("{}; steps {} batch {} reverse {} mask {} backward {} position {} channels {}", c.text(),
          r.steps, r.batch, r.reverse, r.mask, r.backward, r.position, r.max_channels);
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
  const auto run = [&](const auto& on) {
    const Recurrence a = arguments(on);
    recurrence_forward(on, a);
    if (!r.backward) return;
    RecurrenceGradient g;
    g.dh = dh(on);
    dinitial.set(on, g.dinitial);
    g.cell = cell.gradient(on);
    g.scratch = scratch(on);
    recurrence_backward(on, a, g);
  };
  if (!r.persistent) return p.run(run, recurrence_tolerance);
  CudaDevice device(p.device_index());
  device.set_persistent(PersistentUse::on, r.max_channels);
  p.run(
      run,
      [&](const auto&) {
        const Cuda on = device.handle();
        for (const bool backward : {false, true})
          EXPECT_EQ(why_not_persistent(on, shape_of(arguments(on).cell), r.batch, backward), "");
        run(on);
        device.synchronize();
      },
      recurrence_tolerance);
}

}  // namespace nmt::test
