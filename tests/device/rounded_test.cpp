// Inputs of several products that are rounded once: the same bits as separate ops and passes.

#include "autograd/ops/linear.h"
#include "autograd/ops/recurrent.h"
#include "tensor/copy.h"
#include "tests/device/machine.h"
#include "train/optimization/optimizer.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace nmt::test {
namespace {

using Values = std::map<std::string, std::vector<float>>;

Tensor send(const Context& context, Shape shape, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  for (float& x : values) x = static_cast<float>(rng.uniform()) - 0.5f;
  return upload(context, values, shape);
}

// Two layers read x: one with normalization, as one op or as two, and one without.
Values run(Precision precision, bool joined) {
  constexpr std::int64_t steps = 3, batch = 5, k = 13, planes = 2, n = 2 * 11, other = 7;
  Machine machine(DeviceKind::cuda, "", precision);
  const Context& context = machine.context;
  ParameterSet set;
  Rng rng(3);
  const auto add = [&](const char* name, Shape shape, ParameterSet::Init init) -> Parameter& {
    return set.add(context, name, shape, init, rng);
  };
  Parameter& weight = add("weight", {k, n}, ParameterSet::Init::glorot);
  Parameter& gain = add("gain", {n}, ParameterSet::Init::one);
  Parameter& norm_bias = add("norm_bias", {n}, ParameterSet::Init::zero);
  Parameter& second = add("second", {k, other}, ParameterSet::Init::glorot);
  Parameter& bias = add("bias", {other}, ParameterSet::Init::uniform);
  Tape tape(context, true);
  const Var x = tape.result(send(context, {steps, batch, k}, 1));
  const Var y = joined
                    ? ops::linear_norm(tape, x, weight, gain, norm_bias, planes)
                    : ops::layer_norm(tape, ops::linear(tape, x, weight), gain, norm_bias, planes);
  const Var z = ops::linear(tape, x, second, &bias);
  Values found{{"y", download<float>(context, y->value)},
               {"z", download<float>(context, z->value)}};
  y->gradient = send(context, y->value.shape(), 5);
  z->gradient = send(context, z->value.shape(), 6);
  tape.backward();
  found["x"] = download<float>(context, x->gradient);
  for (const Parameter& p : set.all()) found[p.name] = download<float>(context, p.gradient);
  return found;
}

class RoundedInputs : public NeedsCuda {};

TEST_F(RoundedInputs, JoinedLayersGiveTheSameBits) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    const Values joined = run(precision, true), apart = run(precision, false);
    for (const auto& [name, values] : apart) {
      EXPECT_EQ(joined.at(name), values) << name << " in " << name_of(precision);
      double squares = 0;
      for (const float value : values) squares += static_cast<double>(value * value);
      EXPECT_GT(squares, 0) << name;
    }
  }
  EXPECT_NE(run(Precision::float32, true).at("x"), run(Precision::bfloat16, true).at("x"));
}

// The results of passes, each followed by an update. The gradient of the first is not finite, so
// its update changes nothing. Where updates round the weights, passes read their copies.
std::vector<std::vector<float>> train(bool forget) {
  Machine machine(DeviceKind::cuda, "", Precision::bfloat16);
  const Context& context = machine.context;
  ParameterSet set;
  Rng rng(3);
  Parameter& weight = set.add(context, "weight", {13, 24}, ParameterSet::Init::glorot, rng);
  train::Optimizer optimizer(TrainSpec{}, set, context);
  std::vector<std::vector<float>> results;
  const std::vector<float> others(13 * 24, 0.25f);
  for (int pass = 0; pass < 5; ++pass) {
    if (pass == 3)  // other weights, as when training is resumed
      optimizer.for_each_published([&](const std::string&, Tensor& value) {
        upload(context, std::span<const float>(others), value);
      });
    if (forget) weight.rounded = {};
    Tape tape(context, true);
    const Var y = ops::linear(tape, tape.result(send(context, {3, 13}, 1)), weight);
    results.push_back(download<float>(context, y->value));
    Tensor gradient = send(context, y->value.shape(), 5);
    if (pass == 0) gradient = upload(context, std::vector<float>(72, NAN), {3, 24});
    y->gradient = gradient;
    tape.backward();
    EXPECT_EQ(optimizer.update(0.1, 1).applied, pass > 0);
    EXPECT_TRUE(weight.rounded.is_of(weight.value.f32()));
    EXPECT_TRUE(weight.rounded.copy());
  }
  return results;
}

TEST_F(RoundedInputs, UpdatesRoundTheWeights) {
  const auto found = train(false), expected = train(true);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(found[0], found[1]);  // the update that was skipped
  EXPECT_NE(found[1], found[2]);
  EXPECT_EQ(found[3][0], found[3][1]);  // all weights are the same then
}

// A recurrence of a unit whose kernels write what its products read, or with factors of 1 for what
// they read, which they then read without copies.
Values recurrence(const kernels::Unit& unit, bool normalizes, std::int64_t h, bool with_factors) {
  constexpr std::int64_t steps = 4, batch = 5;
  Machine machine(DeviceKind::cuda, "", Precision::bfloat16);
  const Context& context = machine.context;
  ParameterSet set;
  Rng rng(3);
  const std::int64_t products = (unit.recurrents + unit.late) * h;
  const auto add = [&](const char* name, Shape shape, ParameterSet::Init init) {
    return &set.add(context, name, shape, init, rng, 1, 0.5f);
  };
  ops::Cell cell;
  cell.name = "cell";
  cell.unit = &unit;
  cell.width = h;
  cell.recurrent = add("recurrent", {h, products}, ParameterSet::Init::uniform);
  if (normalizes) {
    cell.gain = add("gain", {products}, ParameterSet::Init::one);
    cell.norm_bias = add("norm_bias", {products}, ParameterSet::Init::zero);
  }
  if (unit.vectors > 0)
    cell.vectors = add("vectors", {unit.vectors * h}, ParameterSet::Init::uniform);
  if (unit.position_vectors > 0)
    cell.positions = add("positions", {3, unit.position_vectors * h}, ParameterSet::Init::uniform);
  if (with_factors) cell.dropout = upload(context, std::vector<float>(batch * h, 1.0f), {batch, h});
  Values found;
  for (const bool reverse : {false, true}) {
    Tape tape(context, true);
    const Var x = tape.result(send(context, {steps, batch, unit.inputs * h}, 1));
    const Tensor mask = send(context, {steps, batch}, 2);  // a factor that is 0 nowhere
    const std::vector<Var> states = ops::recurrence(tape, cell, x, {}, mask, reverse);
    tape.input(*states[0]);  // as a layer that reads them
    states[0]->gradient = send(context, {steps, batch, h}, 5);
    const std::string side = reverse ? "reverse " : "";
    found[side + "states"] = download<float>(context, states[0]->value);
    tape.backward();
    found[side + "x"] = download<float>(context, x->gradient);
  }
  found["weights"] = download<float>(context, cell.recurrent->gradient);
  return found;
}

TEST_F(RoundedInputs, RecurrencesGiveTheSameStatesAndGradients) {
  for (const kernels::Unit& unit : kernels::units())
    for (const auto& [normalizes, h] : {std::pair{false, 16}, {true, 16}, {false, 12}}) {
      if (!unit.has_recurrent_product()) continue;
      SCOPED_TRACE(fmt::format("{} {} {} {}", unit.name, unit.variant, normalizes, h));
      const Values own = recurrence(unit, normalizes, h, false),
                   expected = recurrence(unit, normalizes, h, true);
      for (const auto& [name, values] : expected) {
        double difference = 0, squares = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          difference += std::pow(own.at(name)[i] - values[i], 2);
          squares += std::pow(values[i], 2);
        }
        EXPECT_GT(squares, 0) << name;
        // Gradients are added in another order, and a few may be rounded otherwise.
        EXPECT_LE(difference, name.ends_with("states") ? 0 : 1e-7 * squares) << name;
      }
    }
}

}  // namespace
}  // namespace nmt::test
