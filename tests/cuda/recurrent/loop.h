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
  std::int64_t max_channels = 0;  ///< with so many channels of a block at most,
  enum class Passes { both, forward, backward } passes = Passes::both;  ///< in these passes

  /// Chooses how the device runs the next pass.
  void choose(CudaDevice& device, Passes next) const {
    const bool now = persistent && (passes == Passes::both || passes == next);
    device.set_persistent(now ? PersistentUse::on : PersistentUse::off, max_channels);
  }
};

inline void check(Parity& p, const CellSizes& c, const RecurrenceSizes& r) {
  using namespace kernels;
  const Unit& unit = *c.unit;
  p.sizes("{}; steps {} batch {} reverse {} mask {} backward {} position {} channels {} passes {}",
          c.text(), r.steps, r.batch, r.reverse, r.mask, r.backward, r.position, r.max_channels,
          static_cast<int>(r.passes));
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
  const auto run = [&](const auto& on, auto&& before_pass) {
    const Recurrence a = arguments(on);
    before_pass(RecurrenceSizes::Passes::forward);
    recurrence_forward(on, a);
    if (!r.backward) return;
    before_pass(RecurrenceSizes::Passes::backward);
    RecurrenceGradient g;
    g.dh = dh(on);
    dinitial.set(on, g.dinitial);
    g.cell = cell.gradient(on);
    g.scratch = scratch(on);
    recurrence_backward(on, a, g);
  };
  const auto run_alike = [&](const auto& on) { run(on, [](RecurrenceSizes::Passes) {}); };
  if (!r.persistent) return p.run(run_alike, recurrence_tolerance);
  CudaDevice device(p.device_index());
  device.set_persistent(PersistentUse::on, r.max_channels);
  const auto choose = [&](RecurrenceSizes::Passes next) { r.choose(device, next); };
  p.run(
      run_alike,
      [&](const auto&) {
        const Cuda on = device.handle();
        for (const bool backward : {false, true})
          EXPECT_EQ(why_not_persistent(on, shape_of(arguments(on).cell), r.batch, backward), "");
        run(on, choose);
        device.synchronize();
      },
      recurrence_tolerance);
}

}  // namespace nmt::test
