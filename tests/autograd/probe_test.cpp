#include "autograd/ops/conditional.h"
#include "tests/support/cells.h"

#include <gtest/gtest.h>

// Compares what the three drivers record in a probe with the same steps in double.

namespace nmt {
namespace {

using namespace units;
using test::Row;
using test::values;

constexpr std::int64_t steps = 5, batch = 3, width = 7;

template <class U>
constexpr bool has_gates = requires(const Step<double, U>& step, double& gate) {
  U::gates(step, gate, gate);
};

// The gates computed by the unit's header from the inputs of a reference step: x [inputs*H], states
// [states][H].
template <class U>
void expect_gates(const GateRecord& record, std::int64_t row, const test::CellValues& c,
                  const double* x, const std::vector<Row>& states) {
  const float *input = record.input.f32() + row * width,
              *forget = record.forget.f32() + row * width;
  for (std::int64_t j = 0; j < width; ++j) {
    Step<double, U> step{};
    for (int p = 0; p < U::inputs; ++p) step.x[p] = x[p * width + j];
    for (int p = 0; p < U::vectors; ++p) step.v[p] = c.vectors[p * width + j];
    for (int p = 0; p < U::states; ++p) step.s[p] = states[p][j];
    for (int p = 0; p < U::recurrents; ++p) {
      const std::int64_t planes = U::recurrents + U::late, column = p * width + j;
      step.u[p] = c.bias[column];
      for (std::int64_t i = 0; i < width; ++i)
        step.u[p] += states[0][i] * c.recurrent[i * planes * width + column];
    }
    if constexpr (constexpr std::size_t n = position_vectors_of<U>; n > 0) {
      const std::size_t rows = c.positions.size() / (n * width),
                        t = std::min(static_cast<std::size_t>(row / batch), rows - 1);
      for (std::size_t p = 0; p < n; ++p)
        step.position[p] = c.positions[(t * n + p) * width + static_cast<std::size_t>(j)];
    }
    double i, f;
    U::gates(step, i, f);
    EXPECT_NEAR(input[j], i, 1e-5) << record.name << " row " << row;
    EXPECT_NEAR(forget[j], f, 1e-5) << record.name << " row " << row;
  }
}

// A probed pass of one or two units, with its inputs.
template <class U>
struct Pass {
  test::Engine engine{2};
  Tape tape{engine.context, false};
  Probe probe;
  test::CellParameters lower, higher;
  Var x;
  std::vector<Var> initial;

  explicit Pass(const kernels::Unit& unit) {
    tape.watch(&probe);
    make(engine, unit, width, false, lower);
    make(engine, unit, width, false, higher);
    lower.cell.name = "lower";
    higher.cell.name = "higher";
    x = random();
    for (int s = 0; s < U::states; ++s)
      initial.push_back(tape.constant(engine.random({batch, width})));
  }
  Var random() { return tape.constant(engine.random({steps, batch, U::inputs * width})); }
  // The initial states of sentence b.
  std::vector<Row> start(std::int64_t b) const {
    std::vector<Row> states;
    for (const Var& v : initial)
      states.emplace_back(v->value.f32() + b * width, v->value.f32() + (b + 1) * width);
    return states;
  }
  // Checks the records of both units of a step, in the order of execution. Returns whether they
  // contain gates.
  bool records(bool reverse, std::size_t count) const {
    EXPECT_EQ(probe.units.size(), count);
    if (probe.units.size() != count) return false;
    for (std::size_t i = 0; i < count; ++i) {
      const GateRecord& record = probe.units[i];
      EXPECT_EQ(record.name, i == 0 ? "lower" : "higher");
      EXPECT_EQ(record.reverse, reverse);
      EXPECT_EQ(record.lower, static_cast<int>(i) - 1);
      EXPECT_EQ(static_cast<bool>(record.input), has_gates<U>);
    }
    return has_gates<U>;
  }
};

template <class U>
void check_recurrence(const kernels::Unit& unit, bool reverse) {
  Pass<U> pass(unit);
  ops::recurrence(pass.tape, pass.lower.cell, pass.x, pass.initial, {}, reverse);
  if (!pass.records(reverse, 1)) return;
  if constexpr (has_gates<U>) {
    const test::CellValues c = values(pass.lower.cell);
    const Row xs = test::doubles(pass.x->value);
    for (std::int64_t b = 0; b < batch; ++b) {
      std::vector<Row> s = pass.start(b);
      for (std::int64_t n = 0; n < steps; ++n) {
        const std::int64_t t = reverse ? steps - 1 - n : n, row = t * batch + b;
        expect_gates<U>(pass.probe.units[0], row, c, &xs[row * U::inputs * width], s);
        test::cell_step<U>(c, width, &xs[row * U::inputs * width], s, t);
      }
    }
  }
}

// s = lower(h', x), h = higher(s, higher_x). A padded step copies both states; its gates are
// undefined.
template <class U>
void check_transition(const kernels::Unit& unit, bool reverse) {
  Pass<U> pass(unit);
  const Var higher_x = pass.random();
  Tensor mask = pass.engine.context.empty({steps, batch});
  for (std::int64_t t = 0; t < steps; ++t)
    for (std::int64_t b = 0; b < batch; ++b)
      mask.f32()[t * batch + b] = t < steps - b ? 1.0f : 0.0f;
  ops::transition(pass.tape, pass.lower.cell, pass.higher.cell, pass.x, higher_x, pass.initial,
                  mask, reverse);
  if (!pass.records(reverse, 2)) return;
  if constexpr (has_gates<U>) {
    const test::CellValues lower = values(pass.lower.cell), higher = values(pass.higher.cell);
    const Row xs = test::doubles(pass.x->value), higher_xs = test::doubles(higher_x->value);
    for (std::int64_t b = 0; b < batch; ++b) {
      std::vector<Row> s = pass.start(b);
      for (std::int64_t n = 0; n < steps; ++n) {
        const std::int64_t t = reverse ? steps - 1 - n : n, row = t * batch + b,
                           at = row * U::inputs * width;
        if (mask.f32()[row] == 0.0f) continue;
        expect_gates<U>(pass.probe.units[0], row, lower, &xs[at], s);
        test::cell_step<U>(lower, width, &xs[at], s, t);
        expect_gates<U>(pass.probe.units[1], row, higher, &higher_xs[at], s);
        test::cell_step<U>(higher, width, &higher_xs[at], s, t);
      }
    }
  }
}

// s = lower(h', x), c = attention(s Wq), h = higher(s, c Wc + b)
template <class U>
void check_conditional(const kernels::Unit& unit) {
  constexpr std::int64_t source = 4, space = 6, memory_width = 8, heads = 2,
                         wide = U::inputs * width;
  Pass<U> pass(unit);
  test::Engine& engine = pass.engine;
  Parameter v = engine.parameter("v", {space, 1}),
            query = engine.parameter("query", {width, space}, 0.5f),
            context = engine.parameter("context", {memory_width, wide}, 0.5f),
            bias = engine.parameter("bias", {wide});
  const std::vector<int> lengths{4, 2, 3};
  const Var keys = pass.tape.constant(engine.random({source, batch, space}));
  const Row keys_values = test::doubles(keys->value);  // in inference exponentials replace the keys
  const ops::Memory memory =
      ops::remember(pass.tape, {kernels::AttentionKind::additive, heads, &v},
                    pass.tape.constant(engine.random({source, batch, memory_width})), keys,
                    engine.ints({lengths.begin(), lengths.end()}, {batch}));
  const ops::Conditional layer{
      pass.lower.cell, pass.higher.cell, {kernels::AttentionKind::additive, heads, &v},
      &query,          &context,         &bias,
      nullptr,         nullptr};
  ops::conditional(pass.tape, layer, memory, pass.x, pass.initial, {});
  const bool gates = pass.records(false, 2);

  const test::AttentionValues attention{true,
                                        heads,
                                        source,
                                        batch,
                                        space,
                                        memory_width,
                                        keys_values,
                                        test::doubles(memory.values->value),
                                        test::doubles(v.value),
                                        lengths};
  const test::CellValues lower = values(pass.lower.cell), higher = values(pass.higher.cell);
  const Row xs = test::doubles(pass.x->value), q = test::doubles(query.value),
            w = test::doubles(context.value);
  ASSERT_EQ(pass.probe.attention.shape(), (Shape{steps, batch, heads, source}));
  for (std::int64_t b = 0; b < batch; ++b) {
    std::vector<Row> s = pass.start(b);
    for (std::int64_t t = 0; t < steps; ++t) {
      const std::int64_t row = t * batch + b;
      if constexpr (has_gates<U>)
        if (gates) expect_gates<U>(pass.probe.units[0], row, lower, &xs[row * wide], s);
      test::cell_step<U>(lower, width, &xs[row * wide], s, t);
      Row weights;
      Row xc = test::product(
          test::attend(attention, b, test::product(s[0], q, width, space).data(), &weights), w,
          memory_width, wide);
      for (std::int64_t j = 0; j < wide; ++j) xc[j] += bias.value.f32()[j];
      for (std::size_t i = 0; i < weights.size(); ++i)
        EXPECT_NEAR(pass.probe.attention.f32()[row * heads * source + i], weights[i], 1e-5)
            << "row " << row;
      if constexpr (has_gates<U>)
        if (gates) expect_gates<U>(pass.probe.units[1], row, higher, xc.data(), s);
      test::cell_step<U>(higher, width, xc.data(), s, t);
    }
  }
}

template <class U>
void check_unit(const kernels::Unit& unit) {
  SCOPED_TRACE(std::string(unit.name) + " " + unit.variant);
  for (const bool reverse : {false, true}) {
    SCOPED_TRACE(reverse ? "reverse" : "forward");
    check_recurrence<U>(unit, reverse);
    check_transition<U>(unit, reverse);
  }
  check_conditional<U>(unit);
}

TEST(Probe, AWatchedPassLeavesTheGatesOfEveryStep) {
  std::size_t line = 0;
#define NMT_UNIT(the_name, the_variant, ...) check_unit<__VA_ARGS__>(kernels::units()[line++]);
#include "units/units.def"
#undef NMT_UNIT
}

}  // namespace
}  // namespace nmt
