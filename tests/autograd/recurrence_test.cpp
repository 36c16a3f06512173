#include "tests/support/cells.h"

#include <gtest/gtest.h>

namespace nmt {
namespace {

using namespace units;
using test::CellParameters;
using test::make;
using test::Row;
using test::values;

constexpr std::int64_t first_position = 1;

/// test::cell_step of a unit: what alone is compiled once a unit here.
using Step = void (*)(const test::CellValues&, std::size_t, const double*, std::vector<Row>&,
                      std::size_t);

// 1 where a sentence has a step, 0 behind its end.
Tensor padded(test::Engine& engine, std::int64_t steps, std::int64_t batch) {
  Tensor mask = engine.context.empty({steps, batch});
  for (std::int64_t t = 0; t < steps; ++t)
    for (std::int64_t b = 0; b < batch; ++b)
      mask.f32()[t * batch + b] = t < steps - b % 3 ? 1.0f : 0.0f;
  return mask;
}

// Gradients against the slopes of the reference's loss, at some places of each tensor.
struct Slopes {
  test::Engine& engine;
  const std::function<double()>& loss;
  double tolerance;

  void operator()(const Tensor& gradient, Row& at, const char* name) const {
    for (int n = 0; n < 12; ++n) {
      const std::size_t i = engine.rng.below(at.size());
      const double expected = test::slope(loss, at[i]);
      EXPECT_NEAR(gradient.f32()[i], expected, tolerance * (1 + std::abs(expected)))
          << name << ' ' << i;
    }
  }
  void cell(const CellParameters& p, test::CellValues& c) const {
    if (p.cell.recurrent) (*this)(p.recurrent.gradient, c.recurrent, "recurrent");
    if (p.cell.bias) (*this)(p.bias.gradient, c.bias, "bias");
    if (p.cell.gain) (*this)(p.gain.gradient, c.gain, "gain");
    if (p.cell.gain) (*this)(p.norm_bias.gradient, c.norm_bias, "norm_bias");
    if (p.cell.vectors) (*this)(p.vectors.gradient, c.vectors, "vectors");
    if (p.cell.positions) (*this)(p.positions.gradient, c.positions, "positions");
  }
};

void check(Step step, const kernels::Unit& unit, std::int64_t steps, std::int64_t batch,
           std::int64_t h, bool reverse, bool normal, int threads) {
  SCOPED_TRACE(std::string(unit.name) + " " + unit.variant + (reverse ? " reverse" : "") +
               (normal ? " normalized" : "") + " threads " + std::to_string(threads));
  test::Engine engine(threads);
  CellParameters p;
  make(engine, unit, h, normal, p);
  Tape tape(engine.context, true);
  const Var x = tape.result(engine.random({steps, batch, unit.inputs * h}));
  std::vector<Var> initial;
  for (int s = 0; s < unit.states; ++s) initial.push_back(tape.result(engine.random({batch, h})));
  const Tensor mask = padded(engine, steps, batch);
  const std::vector<Var> states =
      ops::recurrence(tape, p.cell, x, initial, mask, reverse, first_position);
  const Tensor weights = engine.random(states[0]->value.shape());

  test::CellValues c = values(p.cell);
  Row xs = test::doubles(x->value), out(steps * batch * h);
  std::vector<Row> starts;
  for (const Var& v : initial) starts.push_back(test::doubles(v->value));
  const std::function<double()> loss = [&] {
    double sum = 0;
    for (std::int64_t b = 0; b < batch; ++b) {
      std::vector<Row> s;
      for (const Row& start : starts)
        s.emplace_back(start.begin() + b * h, start.begin() + (b + 1) * h);
      for (std::int64_t i = 0; i < steps; ++i) {
        const std::int64_t t = reverse ? steps - 1 - i : i;
        if (mask.f32()[t * batch + b] != 0.0f)
          step(c, h, &xs[(t * batch + b) * unit.inputs * h], s, first_position + t);
        for (std::int64_t j = 0; j < h; ++j) {
          out[(t * batch + b) * h + j] = s[0][j];
          sum += s[0][j] * weights.f32()[(t * batch + b) * h + j];
        }
      }
    }
    return sum;
  };
  loss();
  for (std::int64_t i = 0; i < steps * batch * h; ++i)
    ASSERT_NEAR(states[0]->value.f32()[i], out[i], 1e-5) << i;

  states[0]->gradient = weights;
  tape.backward();
  const Slopes compare{engine, loss, 2e-4};
  compare(x->gradient, xs, "x");
  for (int s = 0; s < unit.states; ++s) compare(initial[s]->gradient, starts[s], "initial state");
  compare.cell(p, c);
}

TEST(Recurrence, matches_the_equations_in_double) {
  std::size_t line = 0;
#define NMT_UNIT(the_name, the_variant, ...)                                                   \
  for (const bool reverse : {false, true})                                                     \
    for (const bool normal : {false, true})                                                    \
      for (const int threads : {1, 3})                                                         \
        check(test::cell_step<__VA_ARGS__>, kernels::units()[line], 5, 13, 7, reverse, normal, \
              threads);                                                                        \
  ++line;
#include "units/units.def"
#undef NMT_UNIT
}

void check_transition(Step step, const kernels::Unit& unit, bool reverse, bool normal,
                      int threads) {
  SCOPED_TRACE(std::string(unit.name) + " " + unit.variant + (reverse ? " reverse" : "") +
               (normal ? " normalized" : ""));
  const std::int64_t steps = 5, batch = 9, h = 6, wide = unit.inputs * h;
  test::Engine engine(threads);
  CellParameters lower, higher;
  make(engine, unit, h, normal, lower);
  make(engine, unit, h, normal, higher);
  Tape tape(engine.context, true);
  const Var x = tape.result(engine.random({steps, batch, wide})),
            guide = tape.result(engine.random({steps, batch, wide}));
  std::vector<Var> initial;
  for (int s = 0; s < unit.states; ++s) initial.push_back(tape.result(engine.random({batch, h})));
  const Tensor mask = padded(engine, steps, batch);
  const std::vector<Var> states = ops::transition(tape, lower.cell, higher.cell, x, guide, initial,
                                                  mask, reverse, first_position);
  const Tensor weights = engine.random(states[0]->value.shape());

  test::CellValues lo = values(lower.cell), hi = values(higher.cell);
  Row xs = test::doubles(x->value), gs = test::doubles(guide->value), out(steps * batch * h);
  std::vector<Row> starts;
  for (const Var& v : initial) starts.push_back(test::doubles(v->value));
  const std::function<double()> loss = [&] {
    double sum = 0;
    for (std::int64_t b = 0; b < batch; ++b) {
      std::vector<Row> s;
      for (const Row& start : starts)
        s.emplace_back(start.begin() + b * h, start.begin() + (b + 1) * h);
      for (std::int64_t i = 0; i < steps; ++i) {
        const std::int64_t at = (reverse ? steps - 1 - i : i) * batch + b;
        if (mask.f32()[at] != 0.0f) {
          step(lo, h, &xs[at * wide], s, first_position + at / batch);
          step(hi, h, &gs[at * wide], s, first_position + at / batch);
        }
        for (std::int64_t j = 0; j < h; ++j)
          sum += (out[at * h + j] = s[0][j]) * weights.f32()[at * h + j];
      }
    }
    return sum;
  };
  loss();
  for (std::size_t i = 0; i < out.size(); ++i)
    ASSERT_NEAR(states[0]->value.f32()[i], out[i], 2e-5) << i;

  states[0]->gradient = weights;
  tape.backward();
  const Slopes compare{engine, loss, 5e-4};
  compare(x->gradient, xs, "x");
  compare(guide->gradient, gs, "guide");
  for (int s = 0; s < unit.states; ++s) compare(initial[s]->gradient, starts[s], "initial state");
  compare.cell(lower, lo);
  compare.cell(higher, hi);
}

TEST(Transition, matches_the_equations_in_double) {
  std::size_t line = 0;
#define NMT_UNIT(the_name, the_variant, ...)                                                    \
  for (const bool reverse : {false, true})                                                      \
    for (const bool normal : {false, true})                                                     \
      for (const int threads : {1, 2})                                                          \
        check_transition(test::cell_step<__VA_ARGS__>, kernels::units()[line], reverse, normal, \
                         threads);                                                              \
  ++line;
#include "units/units.def"
#undef NMT_UNIT
}

void check_conditional(Step step, const kernels::Unit& unit, bool additive, std::int64_t heads,
                       bool normal, int threads) {
  SCOPED_TRACE(std::string(unit.name) + " " + unit.variant + (additive ? " additive" : " dot") +
               (normal ? " normalized" : ""));
  const std::int64_t steps = 4, batch = 9, h = 5, source = 6, m = 6, space = 4,
                     wide = unit.inputs * h;
  test::Engine engine(threads);
  CellParameters lower, higher;
  make(engine, unit, h, normal, lower);
  make(engine, unit, h, normal, higher);
  Parameter v = engine.parameter("v", {space, 1}), wq = engine.parameter("query", {h, space}, 0.5f),
            wc = engine.parameter("context", {m, wide}, 0.5f),
            cb = engine.parameter("context bias", {wide}),
            cg = engine.parameter("context gain", {wide}, 0.3f, 1.0f),
            cs = engine.parameter("context norm_bias", {wide});
  ops::Conditional layer;
  layer.lower = lower.cell;
  layer.higher = higher.cell;
  layer.attention = {additive ? kernels::AttentionKind::additive : kernels::AttentionKind::dot,
                     heads, additive ? &v : nullptr};
  layer.query = &wq;
  layer.context = &wc;
  if (normal) {
    layer.context_gain = &cg;
    layer.context_norm_bias = &cs;
  } else {
    layer.context_bias = &cb;
  }
  Tape tape(engine.context, true);
  const Var x = tape.result(engine.random({steps, batch, wide}));
  std::vector<std::int32_t> lengths;
  for (std::int64_t b = 0; b < batch; ++b)
    lengths.push_back(static_cast<std::int32_t>(source - b % 4));
  const ops::Memory memory = ops::remember(
      tape, layer.attention.kind, tape.result(engine.random({source, batch, m})),
      tape.result(engine.random({source, batch, space})), engine.ints(lengths, {batch}));
  std::vector<Var> initial;
  for (int s = 0; s < unit.states; ++s) initial.push_back(tape.result(engine.random({batch, h})));
  const ops::ConditionalResult result =
      ops::conditional(tape, layer, memory, x, initial, {}, first_position);
  const Tensor wh = engine.random({steps, batch, h}), wctx = engine.random({steps, batch, m});

  test::CellValues lo = values(lower.cell), hi = values(higher.cell);
  test::AttentionValues a{additive,
                          static_cast<std::size_t>(heads),
                          static_cast<std::size_t>(source),
                          static_cast<std::size_t>(batch),
                          static_cast<std::size_t>(space),
                          static_cast<std::size_t>(m),
                          test::doubles(memory.keys->value),
                          test::doubles(memory.values->value),
                          test::doubles(v.value),
                          {lengths.begin(), lengths.end()}};
  Row xs = test::doubles(x->value), q = test::doubles(wq.value), wcv = test::doubles(wc.value),
      cbv = test::doubles(cb.value), cgv = test::doubles(cg.value), csv = test::doubles(cs.value),
      hs(steps * batch * h), contexts(steps * batch * m);
  std::vector<Row> starts;
  for (const Var& s : initial) starts.push_back(test::doubles(s->value));
  const std::function<double()> loss = [&] {
    double sum = 0;
    for (std::int64_t b = 0; b < batch; ++b) {
      std::vector<Row> s;
      for (const Row& start : starts)
        s.emplace_back(start.begin() + b * h, start.begin() + (b + 1) * h);
      for (std::int64_t t = 0; t < steps; ++t) {
        const std::int64_t at = t * batch + b;
        step(lo, h, &xs[at * wide], s, first_position + t);
        const Row query = test::product(s[0], q, h, space);
        const Row c = test::attend(a, b, query.data());
        Row xc = test::product(c, wcv, m, wide);
        for (std::int64_t j = 0; j < wide; ++j)
          if (!normal) xc[j] += cbv[j];
        if (normal)
          for (int p = 0; p < unit.inputs; ++p)
            test::normalize(&xc[p * h], h, &cgv[p * h], &csv[p * h]);
        step(hi, h, xc.data(), s, first_position + t);
        for (std::int64_t j = 0; j < h; ++j)
          sum += (hs[at * h + j] = s[0][j]) * wh.f32()[at * h + j];
        for (std::int64_t j = 0; j < m; ++j)
          sum += (contexts[at * m + j] = c[j]) * wctx.f32()[at * m + j];
      }
    }
    return sum;
  };
  loss();
  for (std::size_t i = 0; i < hs.size(); ++i)
    ASSERT_NEAR(result.states[0]->value.f32()[i], hs[i], 2e-5) << i;
  for (std::size_t i = 0; i < contexts.size(); ++i)
    ASSERT_NEAR(result.attended.context->value.f32()[i], contexts[i], 2e-5) << i;

  result.states[0]->gradient = wh;
  result.attended.context->gradient = wctx;
  tape.backward();
  const Slopes compare{engine, loss, 5e-4};
  compare(x->gradient, xs, "x");
  for (int s = 0; s < unit.states; ++s) compare(initial[s]->gradient, starts[s], "initial state");
  compare(memory.keys->gradient, a.keys, "keys");
  compare(memory.values->gradient, a.memory, "memory");
  if (additive) compare(v.gradient, a.v, "v");
  compare(wq.gradient, q, "query");
  compare(wc.gradient, wcv, "context");
  if (normal) {
    compare(cg.gradient, cgv, "context gain");
    compare(cs.gradient, csv, "context norm_bias");
  } else {
    compare(cb.gradient, cbv, "context bias");
  }
  compare.cell(lower, lo);
  compare.cell(higher, hi);
}

TEST(Conditional, matches_the_equations_in_double) {
  std::size_t line = 0;
#define NMT_UNIT(the_name, the_variant, ...)                                                      \
  for (const bool normal : {false, true}) {                                                       \
    check_conditional(test::cell_step<__VA_ARGS__>, kernels::units()[line], true, 1, normal, 2);  \
    check_conditional(test::cell_step<__VA_ARGS__>, kernels::units()[line], true, 2, normal, 1);  \
    check_conditional(test::cell_step<__VA_ARGS__>, kernels::units()[line], false, 2, normal, 2); \
  }                                                                                               \
  ++line;
#include "units/units.def"
#undef NMT_UNIT
}

// Where h follows from c, an initial state is c alone and its gradient is that of both.
TEST(Recurrence, an_initial_state_is_completed) {
  int completed = 0;
  for (const kernels::Unit& unit : kernels::units()) {
    if (unit.initial_states() == unit.states) continue;
    ++completed;
    const std::int64_t h = 7, batch = 2, steps = 3;
    test::Engine engine(1);
    CellParameters p;
    make(engine, unit, h, false, p);
    Tape tape(engine.context, true);
    const Var x = tape.result(engine.random({steps, batch, unit.inputs * h})),
              c = tape.result(engine.random({batch, h}));
    const Var again = tape.result(c->value);
    Tensor output = engine.context.empty({batch, h});
    for (std::int64_t i = 0; i < batch * h; ++i) {
      const float value = c->value.f32()[i];
      output.f32()[i] =
          unit.initial_output == kernels::InitialOutput::tanh ? std::tanh(value) : value;
    }
    const Var start = tape.result(output);
    const Var alone = ops::recurrence(tape, p.cell, x, {c}, {}, false)[0],
              both = ops::recurrence(tape, p.cell, x, {start, again}, {}, false)[0];
    alone->gradient = both->gradient = engine.random({steps, batch, h});
    tape.backward();
    for (std::int64_t i = 0; i < steps * batch * h; ++i)
      EXPECT_NEAR(alone->value.f32()[i], both->value.f32()[i], 1e-6) << unit.name;
    for (std::int64_t i = 0; i < batch * h; ++i) {
      const float y = output.f32()[i],
                  slope = unit.initial_output == kernels::InitialOutput::tanh ? 1 - y * y : 1.0f;
      EXPECT_NEAR(c->gradient.f32()[i], again->gradient.f32()[i] + slope * start->gradient.f32()[i],
                  1e-5)
          << unit.name << ' ' << i;
    }
  }
  EXPECT_GT(completed, 0);
}

TEST(Attention, matches_the_equations_in_double) {
  for (const bool additive : {true, false})
    for (const std::int64_t heads : {1, 3}) {
      const std::int64_t steps = 3, batch = 10, source = 7, m = 6, space = 9;
      test::Engine engine(3);
      Parameter v = engine.parameter("v", {space, 1});
      Tape tape(engine.context, true);
      std::vector<std::int32_t> lengths;
      for (std::int64_t b = 0; b < batch; ++b)
        lengths.push_back(static_cast<std::int32_t>(1 + b % source));
      const ops::AttentionShape shape{
          additive ? kernels::AttentionKind::additive : kernels::AttentionKind::dot, heads, &v};
      const ops::Memory memory = ops::remember(
          tape, shape.kind, tape.result(engine.random({source, batch, m})),
          tape.result(engine.random({source, batch, space})), engine.ints(lengths, {batch}));
      const Var query = tape.result(engine.random({steps, batch, space}));
      const ops::Attended out = ops::attention(tape, shape, memory, query, {});
      const Tensor w = engine.random({steps, batch, m});
      test::AttentionValues a{additive,
                              static_cast<std::size_t>(heads),
                              static_cast<std::size_t>(source),
                              static_cast<std::size_t>(batch),
                              static_cast<std::size_t>(space),
                              static_cast<std::size_t>(m),
                              test::doubles(memory.keys->value),
                              test::doubles(memory.values->value),
                              test::doubles(v.value),
                              {lengths.begin(), lengths.end()}};
      Row q = test::doubles(query->value);
      const std::function<double()> loss = [&] {
        double sum = 0;
        for (std::int64_t at = 0; at < steps * batch; ++at) {
          const Row c = test::attend(a, at % batch, &q[at * space]);
          for (std::int64_t j = 0; j < m; ++j) sum += c[j] * w.f32()[at * m + j];
        }
        return sum;
      };
      for (std::int64_t at = 0; at < steps * batch; ++at) {
        Row weights;
        const Row c = test::attend(a, at % batch, &q[at * space], &weights);
        for (std::int64_t j = 0; j < m; ++j)
          ASSERT_NEAR(out.context->value.f32()[at * m + j], c[j], 1e-5);
        for (std::size_t i = 0; i < weights.size(); ++i)
          ASSERT_NEAR(out.weights.f32()[at * weights.size() + i], weights[i], 1e-6);
      }
      out.context->gradient = w;
      tape.backward();
      const auto compare = [&](const Tensor& gradient, Row& at, const char* name) {
        for (std::size_t i = 0; i < at.size(); i += 3) {
          const double expected = test::slope(loss, at[i]);
          EXPECT_NEAR(gradient.f32()[i], expected, 2e-4 * (1 + std::abs(expected)))
              << name << ' ' << i;
        }
      };
      compare(query->gradient, q, "query");
      compare(memory.keys->gradient, a.keys, "keys");
      compare(memory.values->gradient, a.memory, "memory");
      if (additive) compare(v.gradient, a.v, "v");
    }
}

}  // namespace
}  // namespace nmt
