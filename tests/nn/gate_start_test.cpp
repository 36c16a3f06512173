// How gates start with --gate-init, of all units: the gates themselves, as their headers compute
// them from the parameters of a fresh layer, an input that is 0 after its projection and a state
// of 0.

#include "nn/recurrent/gate_start.h"

#include "core/error.h"
#include "nn/recurrent/conditional_layer.h"
#include "nn/recurrent/recurrent_layer.h"
#include "nn/recurrent/transition_layer.h"
#include "tests/support/engine.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using Numbers = std::vector<double>;

// The pre-activations of the gates at the start, as multiples: of X with `constant`, of a channel's
// log U(1, T-1) with `chrono`. No input gate: it is 1 - f.
struct Expected {
  double forget = 0;
  std::optional<double> input;  // constant
  double chrono_input = -1;
  double bound = 0;  // the forget gate is bound + (1 - bound) * sigmoid
  // Whether the weights of the old state and the new input are gates divided by their sum. Tests
  // of their own check `constant` of these units.
  bool shared = false;
};
// X of the units (docs/reference/units.md).
const std::map<std::string, double> own = {
    {"lrn", 2},    {"glrn", 2},    {"lstm", 1}, {"sru", 1},   {"ssru", 1}, {"elstm1", 1},
    {"mingru", 1}, {"minlstm", 1}, {"hgrn", 1}, {"slstm", 1}, {"gru", 0},  {"atr", 0},
    {"olrn", 0},   {"ran", 0},     {"elrn", 2}, {"elstm2", 0}};
const std::map<std::string, Expected> expected = {
    {"lrn activation=tanh", {1, -0.5}},
    {"lrn activation=identity", {1, -0.5}},
    {"olrn ", {1, -0.5}},
    {"glrn activation=tanh", {1, {}}},
    {"glrn activation=identity", {1, {}}},
    {"elrn activation=tanh", {0, {}}},
    {"elrn activation=identity", {0, {}}},
    {"sru ", {1, {}}},
    {"ssru ", {1, {}}},
    {"mingru ", {1, {}}},
    {"hgrn ", {1, {}, -1, 0.01}},  // the lower bound of the first layer
    {"gru reset=before", {1, {}}},
    {"gru reset=after", {1, {}}},
    {"lstm input=xh", {1, 0}},
    {"lstm input=x", {1, 0}},
    {"ran activation=tanh", {1, -0.5}},
    {"ran activation=identity", {1, -0.5}},
    // p and q are what both gates read: i = s(p + q) moves as p does.
    {"atr forget-gate=released input-gate=own", {1, -1}},
    {"atr forget-gate=released input-gate=complement", {1, {}}},
    {"atr forget-gate=paper input-gate=own", {1, 1, 1}},
    {"atr forget-gate=paper input-gate=complement", {1, {}}},
    {"elstm1 input=xh", {1, -0.5}},
    {"elstm1 input=x", {1, -0.5}},
    // b and -b: sigmoid(b) + sigmoid(-b) = 1, so the division changes nothing.
    {"minlstm ", {1, {}, -1, 0, true}},
    // The input gate is exponential and has no bias: the normalizer cancels a constant factor.
    {"slstm ", {1, {}, -1, 0, true}},
};
// elstm2 forgets nothing: f = 1.
bool keeps_all(const kernels::Unit& unit) {
  return std::string(unit.name) == "elstm2";
}
// slstm: the weights of the old state and the new input are in the proportion sigmoid(f) to e^0.
bool has_exponential_input(const kernels::Unit& unit) {
  return std::string(unit.name) == "slstm";
}

struct Layer {
  Layer(const kernels::Unit& unit, bool normal, bool bias, GateStart gates, std::int64_t width = 8,
        std::uint64_t seed = 3, const std::string& scope = "a")
      : rng(seed),
        layer(Builder(Builder(engine.context, parameters, rng), scope),
              {.unit = &unit,
               .width = width,
               .layer_normalization = normal,
               .bias = bias,
               .positions = 3,
               .gates = gates},
              5) {}
  Numbers values(const std::string& name) {
    const Parameter* p = parameters.find(name);
    return p ? test::doubles(p->value) : Numbers{};
  }
  test::Engine engine{1};
  ParameterSet parameters;
  Rng rng;
  RecurrentLayer layer;
};

std::vector<float> floats(const Numbers& a, const Numbers& b, std::size_t n) {
  std::vector<float> sum(n);
  for (std::size_t i = 0; i < n; ++i)
    sum[i] = static_cast<float>((a.empty() ? 0 : a[i]) + (b.empty() ? 0 : b[i]));
  return sum;
}

// Input and forget gate of each channel of a fresh layer.
struct Gates {
  Gates(Layer& layer, const kernels::Unit& unit, std::size_t width) : input(width), forget(width) {
    const std::vector<float> x = floats(layer.values("a.input_projection_bias"),
                                        layer.values("a.input_projection_norm_bias"),
                                        unit.inputs * width),
                             u = floats(layer.values("a.recurrent_projection_bias"),
                                        layer.values("a.recurrent_projection_norm_bias"),
                                        (unit.recurrents + unit.late) * width),
                             v = floats(layer.values("a.vectors"), {}, unit.vectors * width),
                             zeros(width * 4), ones(width, 1.0f);
    kernels::UnitStep step;
    step.rows = 1;
    step.width = static_cast<std::int64_t>(width);
    step.x = x.data();
    step.u = u.data();
    step.vectors = v.data();
    step.position = ones.data();
    for (const float*& state : step.previous) state = zeros.data();
    unit.gates(step, input.data(), forget.data());
  }
  std::vector<float> input, forget;
};

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double logit(double y) {
  return std::log(y / (1 - y));
}

std::string key_of(const kernels::Unit& unit) {
  return std::string(unit.name) + ' ' + unit.variant;
}

TEST(GateStart, ConstantOfEveryUnit) {
  for (const kernels::Unit& unit : kernels::units()) {
    const auto row = expected.find(key_of(unit));
    // rnn, srn and rglru have no such bias; units from outside are not in the table.
    if (row == expected.end() ? !keeps_all(unit) : row->second.shared) continue;
    for (const bool normal : {false, true})
      for (const bool bias : {false, true})
        for (const double x : {0.0, 1.5, -0.75}) {
          SCOPED_TRACE(key_of(unit) + (normal ? " normalized" : "") + (bias ? " bias" : ""));
          Layer layer(unit, normal, bias, {GateInit::constant, x, 30});
          const Gates gates(layer, unit, 8);
          const double start = x == 0 ? own.at(unit.name) : x;
          for (int j = 0; j < 8; ++j) {
            if (keeps_all(unit)) {
              EXPECT_EQ(gates.forget[j], 1);
              EXPECT_NEAR(gates.input[j], sigmoid(-0.5 * start), 1e-6);
              continue;
            }
            const double bound = row->second.bound;
            const double forget = bound + (1 - bound) * sigmoid(row->second.forget * start);
            EXPECT_NEAR(gates.forget[j], forget, 1e-6);
            const double input =
                row->second.input ? sigmoid(*row->second.input * start) : 1 - forget;
            EXPECT_NEAR(gates.input[j], input, 1e-6);
          }
        }
  }
}

// Its gates share their sum: f / (f + i).
TEST(GateStart, ConstantOfMinLstm) {
  for (const kernels::Unit& unit : kernels::units()) {
    if (std::string(unit.name) != "minlstm") continue;
    for (const double x : {0.0, 1.5}) {
      Layer layer(unit, false, false, {GateInit::constant, x, 30});
      const Gates gates(layer, unit, 8);
      const double start = x == 0 ? own.at("minlstm") : x;
      const double f = sigmoid(start), i = sigmoid(-0.5 * start);
      for (int j = 0; j < 8; ++j) {
        EXPECT_NEAR(gates.forget[j], f / (f + i), 1e-6);
        EXPECT_NEAR(gates.input[j], i / (f + i), 1e-6);
      }
    }
  }
}

// Kolmogorov's distance of the values to the uniform distribution in [low, high], times sqrt(n).
double distance(Numbers values, double low, double high) {
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double f = std::clamp((values[i] - low) / (high - low), 0.0, 1.0);
    most = std::max({most, f - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - f});
  }
  return most * std::sqrt(n);
}

// b_f = log U(1, T-1), b_i = -b_f of the same channel (Tallec & Ollivier, ICLR 2018).
TEST(GateStart, ChronoOfEveryUnit) {
  constexpr int width = 400, steps = 40;
  for (const kernels::Unit& unit : kernels::units()) {
    const auto row = expected.find(key_of(unit));
    if ((row == expected.end() || row->second.forget == 0) && !keeps_all(unit)) continue;
    for (const bool normal : {false, true}) {
      SCOPED_TRACE(key_of(unit) + (normal ? " normalized" : ""));
      Layer layer(unit, normal, false, {GateInit::chrono, 0, steps}, width);
      const Gates gates(layer, unit, width);
      Numbers spans;
      for (int j = 0; j < width; ++j) {
        const double bound = keeps_all(unit) ? 0 : row->second.bound;
        const double open = has_exponential_input(unit) ? gates.forget[j] / gates.input[j]
                                                        : (gates.forget[j] - bound) / (1 - bound);
        const double b = keeps_all(unit) ? -logit(gates.input[j]) : logit(open);
        ASSERT_GE(b, -1e-4);
        ASSERT_LE(b, std::log(steps - 1) + 1e-4);
        spans.push_back(std::exp(b));
        if (!keeps_all(unit) && !has_exponential_input(unit)) {
          const double input = row->second.input ? row->second.chrono_input * b : -b;
          ASSERT_NEAR(gates.input[j], (1 - bound) * sigmoid(input), 2e-6);
        }
      }
      EXPECT_LT(distance(spans, 1, steps - 1), 1.95);
    }
  }
}

// Everything but the biases of gates is drawn as without the option; draws depend on the seed and
// on the layer alone.
TEST(GateStart, OtherParametersStayTheSame) {
  for (const kernels::Unit& unit : kernels::units())
    for (const bool normal : {false, true}) {
      SCOPED_TRACE(key_of(unit));
      Layer none(unit, normal, false, {}), chrono(unit, normal, false, {GateInit::chrono, 0, 9});
      std::size_t changed = 0;
      for (const Parameter& p : chrono.parameters.all()) {
        const Parameter* before = none.parameters.find(p.name);
        if (before && test::doubles(before->value) == test::doubles(p.value)) continue;
        ++changed;
        EXPECT_TRUE(p.name.ends_with("_bias") || p.name == "a.vectors") << p.name;
        EXPECT_TRUE(before || !normal) << p.name;
      }
      EXPECT_EQ(changed, unit.gate_biases.empty() ? 0u : 1u);
      EXPECT_EQ(none.rng.position(), chrono.rng.position());
    }
}

// A gate that would start at 0 needs no bias.
TEST(GateStart, NoBiasIsAddedForAStartAtZero) {
  for (const kernels::Unit& unit : kernels::units()) {
    SCOPED_TRACE(key_of(unit));
    Layer none(unit, false, false, {}), constant(unit, false, false, {GateInit::constant, 0, 30});
    const bool adds = unit.gate_bias != 0 && !unit.gate_biases.empty() &&
                      unit.gate_biases[0].of == kernels::BiasOf::input;
    EXPECT_EQ(constant.parameters.all().size() > none.parameters.all().size(), adds && !unit.bias);
  }
}

// Griffin: a of a fully open gate is uniform in [0.9, 0.999].
TEST(GateStart, DecayOfRglru) {
  constexpr int width = 400;
  for (const kernels::Unit& unit : kernels::units()) {
    if (std::string(unit.name) != "rglru") continue;
    Layer layer(unit, false, false, {}, width);
    Numbers decays;
    for (const double vector : layer.values("a.vectors"))
      decays.push_back(std::pow(1 + std::exp(vector), -8));
    ASSERT_EQ(decays.size(), static_cast<std::size_t>(width));
    EXPECT_LT(distance(decays, 0.9, 0.999), 1.95);
  }
}

// HGRN: the lower bound of layer k of L starts at k/L, that of the first one at 0.01.
TEST(GateStart, LowerBoundOfHgrn) {
  for (const kernels::Unit& unit : kernels::units()) {
    if (std::string(unit.name) != "hgrn") continue;
    for (const int k : {0, 1, 3}) {
      test::Engine engine(1);
      ParameterSet parameters;
      const RecurrentLayer layer(Builder(engine.context, parameters, engine.rng),
                                 UnitSettings{&unit, 8}.at(k, 4), 5);
      for (const double value : test::doubles(parameters.find("vectors")->value))
        EXPECT_NEAR(sigmoid(value), k == 0 ? 0.01 : k / 4.0, 1e-6) << k;
    }
  }
}

// Its gates share their sum: the odds of the old state are sigmoid(f) against e^0.
TEST(GateStart, ConstantOfSlstm) {
  for (const kernels::Unit& unit : kernels::units()) {
    if (std::string(unit.name) != "slstm") continue;
    for (const double x : {0.0, 1.5}) {
      Layer layer(unit, false, false, {GateInit::constant, x, 30});
      const Gates gates(layer, unit, 8);
      const double start = x == 0 ? own.at("slstm") : x;
      for (int j = 0; j < 8; ++j)
        EXPECT_NEAR(gates.forget[j] / gates.input[j], sigmoid(start), 1e-6);
    }
  }
}

TEST(GateStart, ChronoIsDrawnFromSeedAndLayer) {
  const kernels::Unit& unit = kernels::units()[0];
  const GateStart chrono{GateInit::chrono, 0, 30};
  const auto drawn = [&](std::uint64_t seed, const std::string& scope) {
    Layer layer(unit, true, false, chrono, 8, seed, scope);
    return layer.values(scope + ".input_projection_norm_bias");
  };
  EXPECT_EQ(drawn(3, "a"), drawn(3, "a"));
  EXPECT_NE(drawn(3, "a"), drawn(4, "a"));
  EXPECT_NE(drawn(3, "a"), drawn(3, "b"));
}

// Both units of a conditional layer and of a transition, and all groups of a layer.
TEST(GateStart, EveryKindOfLayer) {
  for (const kernels::Unit& unit : kernels::units()) {
    if (std::string(unit.name) != "lrn" && std::string(unit.name) != "gru") continue;
    test::Engine engine(1);
    ParameterSet parameters;
    const Builder builder(engine.context, parameters, engine.rng);
    UnitSettings settings{.unit = &unit, .width = 6, .gates = {GateInit::constant, 3, 30}};
    const TransitionLayer transition(Builder(builder, "a"), settings, 5, 4);
    const ConditionalLayer conditional(Builder(builder, "b"), settings, 5, 4, 4, {});
    settings.groups = 2;
    const RecurrentLayer grouped(Builder(builder, "c"), settings, 4);
    const std::string bias =
        unit.has_recurrent_product() ? ".recurrent_projection_bias" : ".input_projection_bias";
    for (const char* scope : {"a.lower", "a.higher", "b.lower", "b.higher", "c"}) {
      const Parameter* p = parameters.find(scope + bias);
      ASSERT_TRUE(p) << scope;
      const Numbers values = test::doubles(p->value);
      EXPECT_EQ(std::count(values.begin(), values.begin() + 6, 3.0), 6) << scope;
      EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0.0),
                unit.has_recurrent_product() ? 18.0 : 9.0)
          << scope;
    }
  }
}

TEST(GateStart, ModelsForCountingHaveTheSameParameters) {
  const kernels::Unit& unit = kernels::units()[0];
  ParameterSet counted;
  Rng rng(1);
  const GateStart constant{GateInit::constant, 2, 30};
  const RecurrentLayer layer(Builder(Builder(Context{}, counted, rng), "a"),
                             {.unit = &unit, .width = 8, .gates = constant}, 5);
  Layer filled(unit, false, false, constant);
  EXPECT_EQ(counted.elements(), filled.parameters.elements());
  Layer none(unit, false, false, {});
  EXPECT_EQ(counted.elements(), none.parameters.elements() + unit.inputs * 8);
}

TEST(GateStart, StepsBelowThreeAreRefused) {
  EXPECT_THROW(Layer(kernels::units()[0], true, false, {GateInit::chrono, 0, 2}), Error);
}

}  // namespace
}  // namespace nmt
