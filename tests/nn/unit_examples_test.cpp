// Worked examples: a layer of each unit against numbers that an independent numpy program printed
// (unit_examples.py).

#include "nn/recurrent/recurrent_layer.h"
#include "tests/support/engine.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

struct Example {
  std::string unit, variant;
  bool reverse;
  std::vector<double> h;
};
const std::vector<Example> examples = {
#include "unit_examples.inc"
};

void fill(Tensor& tensor, double seed) {
  for (std::int64_t k = 0; k < tensor.elements(); ++k)
    tensor.f32()[k] = static_cast<float>(0.9 * std::sin(seed + 1.7 * static_cast<double>(k)));
}

double seed_of(const std::string& parameter) {
  if (parameter == "input_projection") return 1;
  if (parameter == "recurrent_projection") return 2;
  if (parameter == "recurrent_projection_bias" || parameter == "input_projection_bias") return 3;
  if (parameter == "vectors") return 4;
  return parameter == "positions" ? 5 : std::nan("");
}

const kernels::Unit* find(const Example& example) {
  for (const kernels::Unit& unit : kernels::units())
    if (unit.name == example.unit && unit.variant == example.variant) return &unit;
  return nullptr;
}

TEST(UnitExamples, EqualThoseOfNumpy) {
  for (const Example& example : examples) {
    SCOPED_TRACE(example.unit + " " + example.variant + (example.reverse ? " reverse" : ""));
    const kernels::Unit* unit = find(example);
    ASSERT_NE(unit, nullptr);
    const std::int64_t steps = 3, batch = 2, input = 3, width = 2;
    test::Engine engine(1);
    ParameterSet parameters;
    UnitSettings settings{unit, width};
    settings.positions = 2;
    const RecurrentLayer layer(Builder(engine.context, parameters, engine.rng), settings, input);
    for (Parameter& p : parameters.all()) {
      ASSERT_FALSE(std::isnan(seed_of(p.name))) << p.name;
      fill(p.value, seed_of(p.name));
    }
    Tensor x = engine.context.empty({steps, batch, input}),
           mask = engine.context.empty({steps, batch});
    fill(x, 6);
    std::fill_n(mask.f32(), steps * batch, 1.0f);
    mask.f32()[5] = 0;  // the second sentence has two steps
    Tape tape(engine.context, false);
    const Var h = layer(tape, tape.constant(x), {}, mask, example.reverse)[0];
    ASSERT_EQ(static_cast<std::size_t>(h->value.elements()), example.h.size());
    for (std::size_t i = 0; i < example.h.size(); ++i)
      EXPECT_NEAR(h->value.f32()[i], example.h[i], 2e-6) << i;
  }
}

// M = 5 inputs, N = 7 wide, T = 11 positions; ELSTM paper, table 1, and docs/reference/units.md.
TEST(UnitParameters, AreThoseOfThePapers) {
  const std::int64_t m = 5, n = 7, t = 11;
  const auto count = [&](const std::string& name, const std::string& variant, bool bias = false) {
    ParameterSet parameters;
    Rng rng(1);
    UnitSettings settings{find({name, variant, false, {}}), n};
    settings.bias = bias;
    settings.positions = t;
    const RecurrentLayer layer(Builder(Context{}, parameters, rng), settings, m);
    return parameters.elements();
  };
  EXPECT_EQ(count("rnn", ""), n * (m + n + 1));
  EXPECT_EQ(count("srn", ""), n * (m + n + 1));
  EXPECT_EQ(count("lstm", "input=xh"), 4 * n * (m + n + 1));
  EXPECT_EQ(count("lstm", "input=x"), 4 * n * (m + 1));
  EXPECT_EQ(count("slstm", ""), 4 * n * (m + n + 1));
  EXPECT_EQ(count("hgrn", ""), 2 * n * (m + 1) + n);
  EXPECT_EQ(count("gru", "reset=before"), 3 * n * (m + n + 1));
  EXPECT_EQ(count("gru", "reset=after"), 3 * n * (m + n + 1));
  EXPECT_EQ(count("elstm1", "input=xh"), 4 * n * (m + n + 1) + n * (t + 1));
  EXPECT_EQ(count("elstm2", "input=xh"), 3 * n * (m + n + 1) + n * (t + 1));
  EXPECT_EQ(count("elstm1", "input=x"), 4 * n * (m + 1) + n * (t + 1));
  EXPECT_EQ(count("elstm2", "input=x"), 3 * n * (m + 1) + n * (t + 1));
  EXPECT_EQ(count("ran", "activation=tanh"), n * m + 2 * n * (m + n + 1));
  for (const char* variant :
       {"forget-gate=released input-gate=own", "forget-gate=released input-gate=complement"})
    EXPECT_EQ(count("atr", variant), n * (m + n + 1));
  EXPECT_EQ(count("sru", ""), 4 * n * m + 2 * n);
  EXPECT_EQ(count("lrn", "activation=tanh"), 3 * n * m);
  EXPECT_EQ(count("olrn", ""), 4 * n * m);
  EXPECT_EQ(count("glrn", "activation=tanh"), 2 * n * m);
  EXPECT_EQ(count("elrn", "activation=tanh"), n * m);
  EXPECT_EQ(count("lrn", "activation=tanh", true), 3 * n * (m + 1));  // the option `bias`
  EXPECT_EQ(count("elstm1", "input=x", true), count("elstm1", "input=x"));
}

}  // namespace
}  // namespace nmt
