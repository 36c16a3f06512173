// Inputs of several products that are rounded once: the same bits as separate ops and passes.

#include "autograd/ops.h"
#include "tensor/copy.h"
#include "tests/device/machine.h"

#include <map>
#include <string>
#include <vector>

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

}  // namespace
}  // namespace nmt::test
