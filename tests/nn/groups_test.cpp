// Grouped layers (Gao et al., NAACL 2018) against dense ones whose matrices are the expanded
// block-diagonal ones, with the rearrangement written into their rows. The dense drivers have their
// own test against the equations in double.

#include "autograd/ops/conditional.h"
#include "nn/recurrent/conditional_layer.h"
#include "nn/recurrent/recurrent_layer.h"
#include "tests/support/engine.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

namespace nmt {
namespace {

// Visits (element of the blocks [K,k,P*n], element of the dense matrix [K*k, P*K*n]). The matrix
// reads row r of its rearranged input, r = j*K + g, from channel g*k + j.
void each_weight(const Shape& blocks, int planes, bool rearranged,
                 const std::function<void(std::int64_t, std::int64_t)>& visit) {
  const std::int64_t groups = blocks[0], k = blocks[1], n = blocks[2] / planes;
  for (std::int64_t g = 0; g < groups; ++g)
    for (std::int64_t i = 0; i < k; ++i)
      for (int p = 0; p < planes; ++p)
        for (std::int64_t j = 0; j < n; ++j) {
          const std::int64_t at = g * k + i, row = rearranged ? at % groups * k + at / groups : at;
          visit(at * blocks[2] + p * n + j, row * planes * groups * n + (p * groups + g) * n + j);
        }
}

int planes_of(const Parameter& p, const kernels::Unit& unit) {
  return p.name.find("input_projection") != std::string::npos ? unit.inputs
                                                              : unit.recurrents + unit.late;
}

// Random values everywhere; the dense set gets the same model.
void fill_both(ParameterSet& grouped, ParameterSet& dense, const kernels::Unit& unit,
               bool rearrange, Rng& rng) {
  for (Parameter& p : grouped.all()) {
    Parameter& d = *dense.find(p.name);
    const bool is_gain = p.name.find("gain") != std::string::npos;
    for (std::int64_t i = 0; i < p.shape.elements(); ++i)
      p.value.f32()[i] = 0.5f * rng.normal() + (is_gain ? 1.0f : 0.0f);
    if (p.shape.rank() < 3) {
      ASSERT_EQ(p.shape, d.shape);
      std::copy_n(p.value.f32(), p.shape.elements(), d.value.f32());
    } else {
      ASSERT_EQ(d.shape.elements(), p.shape.elements() * p.shape[0]);
      std::fill_n(d.value.f32(), d.shape.elements(), 0.0f);
      each_weight(p.shape, planes_of(p, unit), rearrange, [&](std::int64_t from, std::int64_t to) {
        d.value.f32()[to] = p.value.f32()[from];
      });
    }
  }
}

// But for rounding, which normalization over few channels magnifies.
void expect_equal(const Tensor& actual, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  for (std::int64_t i = 0; i < actual.elements(); ++i)
    ASSERT_NEAR(actual.f32()[i], expected.f32()[i], 2e-4 * (1 + std::abs(expected.f32()[i])))
        << what << ' ' << i;
}

void expect_equal_gradients(ParameterSet& grouped, ParameterSet& dense, const kernels::Unit& unit,
                            bool rearrange) {
  for (Parameter& p : grouped.all()) {
    const Parameter& d = *dense.find(p.name);
    if (p.shape.rank() < 3) {
      expect_equal(p.gradient, d.gradient, p.name);
      continue;
    }
    each_weight(p.shape, planes_of(p, unit), rearrange, [&](std::int64_t i, std::int64_t j) {
      const float expected = d.gradient.f32()[j];
      EXPECT_NEAR(p.gradient.f32()[i], expected, 1e-4 * (1 + std::abs(expected)))
          << p.name << ' ' << i;
    });
  }
}

struct Case {
  std::int64_t groups;
  bool rearrange, normal, reverse;
  int threads;
};
const Case cases[] = {{1, false, false, false, 2}, {1, true, true, false, 1},
                      {2, false, false, true, 2},  {2, true, false, false, 1},
                      {2, true, true, true, 3},    {4, false, true, false, 2},
                      {4, true, false, true, 2},   {4, true, true, false, 2}};

TEST(Groups, ALayerEqualsTheDenseOneOfTheExpandedMatrices) {
  const std::int64_t steps = 5, batch = 9;
  for (const kernels::Unit& unit : kernels::units())
    for (const Case& c : cases) {
      SCOPED_TRACE(std::string(unit.name) + ' ' + unit.variant + ", groups " +
                   std::to_string(c.groups) + (c.rearrange ? " rearranged" : "") +
                   (c.normal ? " normalized" : ""));
      test::Engine engine(c.threads);
      const std::int64_t input = 3 * c.groups, width = 5 * c.groups;
      UnitSettings settings{.unit = &unit,
                            .width = width,
                            .layer_normalization = c.normal,
                            .bias = true,
                            .positions = 4};
      ParameterSet dense_parameters, grouped_parameters;
      const RecurrentLayer dense(Builder(engine.context, dense_parameters, engine.rng), settings,
                                 input);
      settings.groups = c.groups;
      settings.rearrange = c.rearrange;
      const RecurrentLayer grouped(Builder(engine.context, grouped_parameters, engine.rng),
                                   settings, input);
      fill_both(grouped_parameters, dense_parameters, unit, c.rearrange, engine.rng);

      const Tensor x = engine.random({steps, batch, input}),
                   dh = engine.random({steps, batch, width});
      std::vector<Tensor> start;
      for (int s = 0; s < unit.states; ++s) start.push_back(engine.random({batch, width}));
      Tensor mask = engine.context.empty({steps, batch});
      for (std::int64_t i = 0; i < steps * batch; ++i)
        mask.f32()[i] = i / batch < steps - i % batch % 3 ? 1.0f : 0.0f;
      struct Run {
        Var x;
        std::vector<Var> start, states;
      };
      const auto run = [&](const RecurrentLayer& layer) {
        Tape tape(engine.context, true);
        Run r{tape.result(x), {}, {}};
        for (const Tensor& s : start) r.start.push_back(tape.result(s));
        r.states = layer(tape, r.x, r.start, mask, c.reverse);
        r.states[0]->gradient = engine.context.empty(dh.shape());
        std::copy_n(dh.f32(), dh.elements(), r.states[0]->gradient.f32());
        tape.backward();
        return r;
      };
      const Run a = run(grouped), b = run(dense);
      for (int s = 0; s < unit.states; ++s) {
        expect_equal(a.states[s]->value, b.states[s]->value, "states");
        expect_equal(a.start[s]->gradient, b.start[s]->gradient, "gradient of the initial states");
      }
      expect_equal(a.x->gradient, b.x->gradient, "gradient of x");
      expect_equal_gradients(grouped_parameters, dense_parameters, unit, c.rearrange);
      grouped.freeze(engine.context);
      Tape tape(engine.context, false);
      std::vector<Var> frozen_start;
      for (const Tensor& s : start) frozen_start.push_back(tape.constant(s));
      const std::vector<Var> frozen =
          grouped(tape, tape.constant(x), frozen_start, mask, c.reverse);
      for (int s = 0; s < unit.states; ++s)
        expect_equal(frozen[s]->value, b.states[s]->value, "frozen states");
    }
}

TEST(Groups, AConditionalLayerEqualsTheDenseOneOfTheExpandedMatrices) {
  const std::int64_t steps = 4, batch = 7, source = 5, space = 6;
  for (const kernels::Unit& unit : kernels::units())
    for (const Case& c : cases) {
      SCOPED_TRACE(std::string(unit.name) + ' ' + unit.variant + ", groups " +
                   std::to_string(c.groups) + (c.rearrange ? " rearranged" : "") +
                   (c.normal ? " normalized" : ""));
      test::Engine engine(c.threads);
      const std::int64_t input = 3 * c.groups, width = 5 * c.groups, memory_width = 7 * c.groups;
      UnitSettings settings{.unit = &unit,
                            .width = width,
                            .layer_normalization = c.normal,
                            .bias = true,
                            .positions = 4};
      Parameter v = engine.parameter("v", {space, 1});
      const ops::AttentionShape attention{kernels::AttentionKind::additive, 1, &v};
      ParameterSet dense_parameters, grouped_parameters;
      const ConditionalLayer dense(Builder(engine.context, dense_parameters, engine.rng), settings,
                                   input, memory_width, space, attention);
      settings.groups = c.groups;
      settings.rearrange = c.rearrange;
      const ConditionalLayer grouped(Builder(engine.context, grouped_parameters, engine.rng),
                                     settings, input, memory_width, space, attention);
      fill_both(grouped_parameters, dense_parameters, unit, c.rearrange, engine.rng);

      const Tensor x = engine.random({steps, batch, input}),
                   dh = engine.random({steps, batch, width}),
                   dc = engine.random({steps, batch, memory_width}),
                   values = engine.random({source, batch, memory_width}),
                   keys = engine.random({source, batch, space});
      const Tensor lengths = engine.ints({5, 4, 3, 5, 1, 2, 5}, {batch});
      struct Run {
        Var x, values, keys;
        ops::ConditionalResult out;
      };
      const auto run = [&](const ConditionalLayer& layer, bool with_context_gradient) {
        Tape tape(engine.context, true);
        Run r{tape.result(x), tape.result(values), tape.result(keys), {}};
        r.out = layer(tape, r.x, ops::remember(tape, attention, r.values, r.keys, lengths), {}, {});
        const auto seed = [&](Node& node, const Tensor& gradient) {
          node.gradient = engine.context.empty(gradient.shape());
          std::copy_n(gradient.f32(), gradient.elements(), node.gradient.f32());
        };
        seed(*r.out.states[0], dh);
        if (with_context_gradient) seed(*r.out.attended.context, dc);
        tape.backward();
        return r;
      };
      const bool both = c.reverse;
      const Run a = run(grouped, both), b = run(dense, both);
      expect_equal(a.out.states[0]->value, b.out.states[0]->value, "states");
      expect_equal(a.out.attended.context->value, b.out.attended.context->value, "contexts");
      expect_equal(a.x->gradient, b.x->gradient, "gradient of x");
      expect_equal(a.values->gradient, b.values->gradient, "gradient of the memory");
      expect_equal(a.keys->gradient, b.keys->gradient, "gradient of the keys");
      expect_equal_gradients(grouped_parameters, dense_parameters, unit, c.rearrange);
      grouped.freeze(engine.context);
      Tape tape(engine.context, false);
      const ops::ConditionalResult frozen = grouped(
          tape, tape.constant(x),
          ops::remember(tape, attention, tape.constant(values), tape.constant(keys), lengths), {},
          {});
      expect_equal(frozen.states[0]->value, b.out.states[0]->value, "frozen states");
    }
}

// Gao et al. 2018, eq. 6: (N*N + N*M) / K weights a gate.
TEST(Groups, WeightsOfALayer) {
  const std::int64_t m = 24, n = 40;
  for (const kernels::Unit& unit : kernels::units())
    for (const std::int64_t groups : {1, 2, 4, 8}) {
      ParameterSet parameters;
      Rng rng(1);
      const UnitSettings settings{.unit = &unit, .width = n, .groups = groups, .positions = 4};
      const RecurrentLayer layer(Builder(Context{}, parameters, rng), settings, m);
      EXPECT_EQ(parameters.find("input_projection")->shape.elements(), unit.inputs * n * m / groups)
          << unit.name;
      if (unit.has_recurrent_product()) {
        EXPECT_EQ(parameters.find("recurrent_projection")->shape.elements(),
                  (unit.recurrents + unit.late) * n * n / groups)
            << unit.name;
      }
      if (unit.inputs == unit.recurrents + unit.late) {
        std::int64_t weights = 0;
        for (const Parameter& p : parameters.all())
          if (p.shape.rank() >= 2 && p.name.find("projection") != std::string::npos)
            weights += p.shape.elements();
        EXPECT_EQ(weights, unit.inputs * (n * n + n * m) / groups) << unit.name;
      }
    }
}

TEST(Groups, BlocksAreInitializedByTheirOwnFan) {
  test::Engine engine;
  ParameterSet set;
  const std::int64_t groups = 4, k = 30, n = 20;
  const int planes = 3;
  const Parameter& uniform = set.add(engine.context, "a", {groups, k, planes * n},
                                     ParameterSet::Init::glorot, engine.rng, planes);
  const float bound = std::sqrt(6.0f / static_cast<float>(k + n));  // Glorot & Bengio 2010, eq. 16
  float largest = 0;
  for (std::int64_t i = 0; i < uniform.shape.elements(); ++i)
    largest = std::max(largest, std::abs(uniform.value.f32()[i]));
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.99f * bound);
  const Parameter& square = set.add(engine.context, "b", {groups, n, planes * n},
                                    ParameterSet::Init::orthogonal, engine.rng, planes);
  for (std::int64_t g = 0; g < groups; ++g)
    for (int p = 0; p < planes; ++p)
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          double product = 0;
          for (std::int64_t c = 0; c < n; ++c)
            product += double{square.value.f32()[(g * n + i) * planes * n + p * n + c]} *
                       square.value.f32()[(g * n + j) * planes * n + p * n + c];
          ASSERT_NEAR(product, i == j ? 1 : 0, 1e-5);
        }
}

TEST(Groups, ThatDoNotDivideAreNamed) {
  const auto message = [](std::int64_t groups, std::int64_t input,
                          std::int64_t width) -> std::string {
    ParameterSet parameters;
    Rng rng(1);
    try {
      RecurrentLayer(Builder(Context{}, parameters, rng),
                     {.unit = &kernels::units()[0], .width = width, .groups = groups}, input);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::usage);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(3, 12, 9), "");
  EXPECT_EQ(
      message(3, 12, 10),
      "groups: 3 must divide both the width 12 of what a layer reads and the width 10 of its unit");
  EXPECT_EQ(
      message(5, 12, 10),
      "groups: 5 must divide both the width 12 of what a layer reads and the width 10 of its unit");
}

}  // namespace
}  // namespace nmt
