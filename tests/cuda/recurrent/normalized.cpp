// Single steps that apply the layer normalization of their projections themselves
// (kernels::PendingNorm), against the CPU, which normalizes them before.

#include "kernels/layer_norm.h"
#include "kernels/recurrent/transition.h"
#include "tests/cuda/cells.h"

namespace nmt::test {
namespace {

using namespace nmt::kernels;

constexpr std::int64_t batch = 5;

/// Projections of a step and the parameters of their normalization.
struct BothProjections {
  std::int64_t planes, width;
  BothFloats product, gain, bias;
  BothProjections(Parity& p, std::int64_t inputs, std::int64_t h)
      : planes(inputs),
        width(h),
        product(p.floats(batch * inputs * h)),
        gain(p.floats(inputs * h, 1.0f)),
        bias(p.floats(inputs * h)) {}
  const float* set(const Cpu& on, PendingNorm&) const {
    layer_norm(on, batch, planes, width, product(on), gain(on), bias(on), product(on), nullptr);
    return product(on);
  }
  const float* set(const Cuda& on, PendingNorm& norm) const {
    norm = {product(on), gain(on), bias(on)};
    return nullptr;
  }
};

BothFloats copies_of(Parity& p, std::int64_t n) {
  return p.scratch(0, n);
}
Bfloat16* as_copies(const BothFloats& buffer, const Cuda& on) {
  return reinterpret_cast<Bfloat16*>(buffer(on));
}

void recurrences(Parity& p, const CellSizes& c) {
  const Unit& unit = *c.unit;
  p.sizes("{}", c.text());
  const std::int64_t h = c.width;
  const BothCell cell(p, c, batch, batch);
  const BothProjections x(p, unit.inputs, h);
  const BothStates initial(p, unit.states, batch * h), states(p, unit.states, batch * h);
  const auto copies = copies_of(p, batch * h);
  const auto arguments = [&](const auto& on) {
    Recurrence a;
    a.cell = cell.cell(on);
    a.steps = 1;
    a.batch = batch;
    a.position = 1;
    a.keep = false;
    a.x = x.set(on, a.x_norm);
    initial.set(on, a.initial);
    states.set(on, a.states);
    a.record = cell.record(on);
    return a;
  };
  p.run([&](const Cpu& on) { recurrence_forward(on, arguments(on)); },
        [&](const Cuda& on) {
          Recurrence a = arguments(on);
          a.states_rounded = as_copies(copies, on);
          recurrence_forward(on, a);
        },
        recurrence_tolerance);
  float* found[max_states];
  states.set(p.cuda(), found);
  p.expect_rounded(batch * h, found[0], as_copies(copies, p.cuda()));
}

void transitions(Parity& p, const CellSizes& c) {
  const Unit& unit = *c.unit;
  p.sizes("{}", c.text());
  const std::int64_t h = c.width;
  const BothCell lower(p, c, batch, batch), higher(p, c, batch, batch);
  const BothProjections x(p, unit.inputs, h), higher_x(p, unit.inputs, h);
  const BothStates initial(p, unit.states, batch * h), states(p, unit.states, batch * h),
      middle(p, unit.states, batch * h);
  const auto copies = copies_of(p, batch * h);
  const auto arguments = [&](const auto& on) {
    Transition a;
    a.lower = lower.cell(on);
    a.higher = higher.cell(on);
    a.steps = 1;
    a.batch = batch;
    a.position = 1;
    a.keep = false;
    a.x = x.set(on, a.x_norm);
    a.higher_x = higher_x.set(on, a.higher_x_norm);
    initial.set(on, a.initial);
    states.set(on, a.states);
    middle.set(on, a.middle);
    a.lower_record = lower.record(on);
    a.higher_record = higher.record(on);
    return a;
  };
  p.run([&](const Cpu& on) { transition_forward(on, arguments(on)); },
        [&](const Cuda& on) {
          Transition a = arguments(on);
          a.states_rounded = as_copies(copies, on);
          transition_forward(on, a);
        },
        recurrence_tolerance);
  float* found[max_states];
  states.set(p.cuda(), found);
  p.expect_rounded(batch * h, found[0], as_copies(copies, p.cuda()));
}

}  // namespace

std::vector<ParityRow> normalized_parity() {
  return {
      {"recurrence_normalized",
       [](Parity& p) {
         each_cell([&](const CellSizes& c) { recurrences(p, c); });
         recurrences(p, {.unit = &units()[0], .width = 1030});
       }},
      {"transition_normalized",
       [](Parity& p) {
         each_cell([&](const CellSizes& c) { transitions(p, c); });
         transitions(p, {.unit = &units()[0], .width = 1030});
       }},
  };
}

}  // namespace nmt::test
