// Persistent recurrences against those with a launch per product and step, on one device.

#include "kernels/recurrent/persistent.h"

#include "autograd/ops/recurrent.h"
#include "tensor/copy.h"
#include "tests/device/machine.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace nmt::test {
namespace {

using Values = std::map<std::string, std::vector<float>>;

struct Loop {
  const kernels::Unit* unit;
  std::int64_t width, groups, steps, batch;
  bool normalizes, drops, reverse, rearranges = false;
  std::string text() const {
    return fmt::format(
        "{} {} width {} groups {} steps {} batch {} norm {} dropout {} reverse {} rearrange {}",
        unit->name, unit->variant, width, groups, steps, batch, normalizes, drops, reverse,
        rearranges);
  }
};

Tensor random(const Context& context, Shape shape, std::uint64_t seed, float mean = 0) {
  Rng rng(seed);
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  for (float& x : values) x = static_cast<float>(rng.uniform()) - 0.5f + mean;
  return upload(context, values, shape);
}

// States and gradients of a recurrence.
Values run(const Loop& loop, Precision precision, bool persistent) {
  Machine machine(DeviceKind::cuda, "", precision);
  // 0: as many as fit, so that a block has two groups of columns and chunks of k.
  if (persistent) machine.device->set_persistent(PersistentUse::on, loop.width > 90 ? 0 : 11);
  const Context& context = machine.context;
  const kernels::Unit& unit = *loop.unit;
  const std::int64_t h = loop.width, products = (unit.recurrents + unit.late) * h;
  const kernels::CellShape of_cell{loop.unit, loop.width, loop.groups, loop.rearranges,
                                   loop.normalizes};
  for (const bool backward : {false, true})
    EXPECT_EQ(kernels::why_not_persistent(machine.device->handle(), of_cell, loop.batch, backward),
              "");
  ParameterSet set;
  Rng rng(3);
  using Init = ParameterSet::Init;
  const auto add = [&](const char* name, Shape shape, Init init) {
    return &set.add(context, name, shape, init, rng, 1,
                    1.0f / std::sqrt(static_cast<float>(h / loop.groups)));
  };
  ops::Cell cell;
  cell.name = "cell";
  cell.unit = &unit;
  cell.width = h;
  cell.groups = loop.groups;
  cell.rearrange = loop.rearranges;
  const std::int64_t part = h / loop.groups;
  cell.recurrent = loop.groups == 1 ? add("recurrent", {h, products}, Init::uniform)
                                    : add("recurrent", {loop.groups, part, products / loop.groups},
                                          Init::uniform);
  if (loop.normalizes) {
    cell.gain = add("gain", {products}, Init::one);
    cell.norm_bias = add("norm_bias", {products}, Init::zero);
  } else {
    cell.bias = add("bias", {products}, Init::uniform);
  }
  if (unit.vectors > 0) cell.vectors = add("vectors", {unit.vectors * h}, Init::uniform);
  if (unit.position_vectors > 0)
    cell.positions = add("positions", {3, unit.position_vectors * h}, Init::uniform);
  if (loop.drops) cell.dropout = random(context, {loop.batch, h}, 8, 1.0f);
  Tape tape(context, true);
  const Var x = tape.result(random(context, {loop.steps, loop.batch, unit.inputs * h}, 1));
  std::vector<float> present(static_cast<std::size_t>(loop.steps * loop.batch), 1.0f);
  for (std::size_t i = 0; i < present.size(); i += 5) present[i] = 0.0f;
  const Tensor mask = upload(context, present, {loop.steps, loop.batch});
  const std::vector<Var> states = ops::recurrence(tape, cell, x, {}, mask, loop.reverse);
  tape.input(*states[0]);  // as a layer that reads them
  states[0]->gradient = random(context, {loop.steps, loop.batch, h}, 5);
  Values found{{"states", download<float>(context, states[0]->value)}};
  tape.backward();
  found["x"] = download<float>(context, x->gradient);
  for (const Parameter& p : set.all()) found[p.name] = download<float>(context, p.gradient);
  return found;
}

// The square of the relative difference that is allowed: rounding errors, and in bfloat16 states
// that are rounded to the other neighbor.
double allowed(Precision precision) {
  return precision == Precision::float32 ? 1e-10 : 1e-4;
}

class PersistentRecurrence : public NeedsCuda {};

TEST_F(PersistentRecurrence, AgreesWithALaunchPerStep) {
  std::vector<Loop> loops;
  for (const kernels::Unit& unit : kernels::units()) {
    if (!unit.has_recurrent_product()) continue;
    loops.push_back({&unit, 24, 1, 5, 3, false, false, false});
    loops.push_back({&unit, 33, 1, 2, 2, true, false, true});
    loops.push_back({&unit, 48, 3, 3, 4, false, true, true});
    loops.push_back({&unit, 48, 3, 3, 4, false, false, false, true});
    if (std::string_view(unit.name) != "gru" && std::string_view(unit.name) != "lstm") continue;
    loops.push_back({&unit, 40, 1, 3, 37, true, true, false});
    loops.push_back({&unit, 36, 2, 9, 1, true, false, false});
    loops.push_back({&unit, 96, 1, 2, 3, false, false, false});
  }
  for (const Precision precision : {Precision::float32, Precision::bfloat16})
    for (const Loop& loop : loops) {
      SCOPED_TRACE(fmt::format("{} {}", loop.text(), name_of(precision)));
      const Values found = run(loop, precision, true), expected = run(loop, precision, false);
      for (const auto& [name, values] : expected) {
        double difference = 0, squares = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          difference += std::pow(found.at(name)[i] - values[i], 2);
          squares += std::pow(values[i], 2);
        }
        EXPECT_GT(squares, 0) << name;
        EXPECT_LE(difference, allowed(precision) * squares) << name;
      }
    }
}

}  // namespace
}  // namespace nmt::test
