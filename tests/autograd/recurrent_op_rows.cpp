// Rows of the op table: recurrence and transition, for every unit.

#include "autograd/ops/recurrent.h"
#include "tests/autograd/op_rows.h"
#include "tests/autograd/recurrent_cells.h"

namespace nmt::test {
namespace {

constexpr std::int64_t first_position = 1;
constexpr std::size_t samples = 6;

// 1 where a sentence has a step, 0 behind its end; empty when no sentence is padded.
Tensor random_mask(Engine& engine, std::int64_t steps, std::int64_t batch) {
  if (engine.rng.below(4) == 0) return {};
  Tensor mask = engine.context.empty({steps, batch});
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t length = between(engine, 1, steps);
    for (std::int64_t t = 0; t < steps; ++t) mask.f32()[t * batch + b] = t < length ? 1.0f : 0.0f;
  }
  return mask;
}

struct Layer {
  std::int64_t steps, batch, h, wide;
  bool reverse;
  Tensor mask;
  std::vector<Var> initial;
  std::vector<Row> starts;

  Layer(Engine& engine, Tape& tape, const kernels::Unit& unit, std::int64_t width)
      : steps(between(engine, 2, 4)),
        batch(between(engine, 1, 20)),
        h(width),
        wide(unit.inputs * width),
        reverse(engine.rng.below(2)),
        mask(random_mask(engine, steps, batch)) {
    for (int s = 0; s < unit.states; ++s) {
      initial.push_back(tape.result(engine.random({batch, h})));
      starts.push_back(doubles(initial.back()->value));
    }
  }
  void read(GradientCheck& check) {
    for (std::size_t s = 0; s < initial.size(); ++s)
      check.reads("initial state " + std::to_string(s), starts[s], initial[s]);
  }
  /// The states after every step: `advance` takes the states of a row over step t, where it has it.
  template <class Advance>
  Row run(const Advance& advance) const {
    Row out(steps * batch * h);
    for (std::int64_t b = 0; b < batch; ++b) {
      std::vector<Row> s = states_of(starts, b, h);
      for (std::int64_t i = 0; i < steps; ++i) {
        const std::int64_t t = reverse ? steps - 1 - i : i, at = t * batch + b;
        if (!mask || mask.f32()[at] != 0.0f) advance(at, t, s);
        std::copy(s[0].begin(), s[0].end(), &out[at * h]);
      }
    }
    return out;
  }
};

std::int64_t random_width(Engine& engine, const Blocks& blocks) {
  return blocks.groups * between(engine, 6 / blocks.groups, 18 / blocks.groups);
}

void check_recurrence(Engine& engine, CellStep step, const kernels::Unit& unit, bool normal,
                      Blocks blocks) {
  Tape tape(engine.context, true);
  Layer layer(engine, tape, unit, random_width(engine, blocks));
  TestedCell cell;
  cell.make(engine, unit, layer.h, normal, blocks);
  cell.drop(engine, layer.batch);
  const Var x = tape.result(engine.random({layer.steps, layer.batch, layer.wide}));
  Row xs = doubles(x->value);
  GradientCheck check(engine, {one_function, layer.steps * (layer.h + layer.batch)});
  check.reads("x", xs, x);
  layer.read(check);
  cell.read(check, "cell");
  check.gives("states", ops::recurrence(tape, cell.parameters.cell, x, layer.initial, layer.mask,
                                        layer.reverse, first_position)[0]);
  check.run(
      tape,
      [&] {
        const std::vector<CellValues> values = cell.expanded_rows(layer.batch);
        return layer.run([&](std::int64_t at, std::int64_t t, std::vector<Row>& s) {
          step(values[at % layer.batch], layer.h, &xs[at * layer.wide], s, first_position + t);
        });
      },
      samples);
}

void check_transition(Engine& engine, CellStep step, const kernels::Unit& unit, bool normal,
                      bool dropout) {
  Tape tape(engine.context, true);
  Layer layer(engine, tape, unit, random_width(engine, {}));
  TestedCell lower, higher;
  for (TestedCell* cell : {&lower, &higher}) {
    cell->make(engine, unit, layer.h, normal, {.dropout = dropout});
    cell->drop(engine, layer.batch);
  }
  const Shape shape{layer.steps, layer.batch, layer.wide};
  const Var x = tape.result(engine.random(shape)), higher_x = tape.result(engine.random(shape));
  Row xs = doubles(x->value), higher_xs = doubles(higher_x->value);
  GradientCheck check(engine, {one_function, 2 * layer.steps * (layer.h + layer.batch)});
  check.reads("x", xs, x);
  check.reads("higher_x", higher_xs, higher_x);
  layer.read(check);
  lower.read(check, "lower");
  higher.read(check, "higher");
  check.gives("states",
              ops::transition(tape, lower.parameters.cell, higher.parameters.cell, x, higher_x,
                              layer.initial, layer.mask, layer.reverse, first_position)[0]);
  check.run(
      tape,
      [&] {
        const std::vector<CellValues> low = lower.expanded_rows(layer.batch),
                                      high = higher.expanded_rows(layer.batch);
        return layer.run([&](std::int64_t at, std::int64_t t, std::vector<Row>& s) {
          const std::int64_t b = at % layer.batch;
          step(low[b], layer.h, &xs[at * layer.wide], s, first_position + t);
          step(high[b], layer.h, &higher_xs[at * layer.wide], s, first_position + t);
        });
      },
      samples);
}

// y_t = bias + sum of w_k x_(t-k), whose inputs are real steps or what came before step 0.
void check_convolution(Engine& engine, bool reverse, bool continued) {
  const std::int64_t taps = between(engine, 2, 5), width = between(engine, 1, 9),
                     steps = between(engine, 1, 6), batch = between(engine, 1, 5);
  Tape tape(engine.context, true);
  Parameter weight = engine.parameter("weight", {taps, width}),
            bias = engine.parameter("bias", {width});
  const Tensor mask = random_mask(engine, steps, batch);
  const Var x = tape.result(engine.random({steps, batch, width})),
            before =
                continued ? tape.constant(engine.random({batch, (taps - 1) * width})) : nullptr;
  Row xs = doubles(x->value), w = doubles(weight.value), b = doubles(bias.value);
  const Row past = continued ? doubles(before->value) : Row{};
  const ops::Convolved out = ops::convolution(tape, x, weight, bias, before, mask, reverse);
  const auto input = [&](std::int64_t t, std::int64_t row, std::int64_t j) {
    if (t < 0)
      return continued ? past[static_cast<std::size_t>((row * (taps - 1) - t - 1) * width + j)]
                       : 0.0;
    if (t >= steps || (mask && mask.f32()[t * batch + row] == 0.0f)) return 0.0;
    return xs[static_cast<std::size_t>((t * batch + row) * width + j)];
  };
  ASSERT_EQ(out.last == nullptr, reverse);
  for (std::int64_t row = 0; out.last && row < batch; ++row)
    for (std::int64_t k = 1; k < taps; ++k)
      for (std::int64_t j = 0; j < width; ++j)
        EXPECT_EQ(out.last->value.f32()[(row * (taps - 1) + k - 1) * width + j],
                  static_cast<float>(input(steps - k, row, j)));
  GradientCheck check(engine, {one_rounding, std::max(taps, steps * batch) + 1});
  check.reads("x", xs, x);
  check.reads("weight", w, weight);
  check.reads("bias", b, bias);
  check.gives("y", out.y);
  check.run(tape, [&] {
    Row y;
    for (std::int64_t t = 0; t < steps; ++t)
      for (std::int64_t row = 0; row < batch; ++row)
        for (std::int64_t j = 0; j < width; ++j) {
          double sum = b[static_cast<std::size_t>(j)];
          for (std::int64_t k = 0; k < taps; ++k)
            sum +=
                w[static_cast<std::size_t>(k * width + j)] * input(reverse ? t + k : t - k, row, j);
          y.push_back(sum);
        }
    return y;
  });
}

void add_rows(std::vector<OpRow>& rows, CellStep step, const kernels::Unit& unit) {
  const auto recurrence = [&](const std::string& variant, bool normal, Blocks blocks) {
    rows.push_back({"recurrence", row_name(unit) + variant, [=, &unit](Engine& engine) {
                      check_recurrence(engine, step, unit, normal, blocks);
                    }});
  };
  recurrence("", false, {});
  recurrence("_normalized", true, {});
  if (unit.recurrents + unit.late > 0) {
    recurrence("_groups", false, {2, false});
    recurrence("_groups_normalized", true, {3, true});
    recurrence("_dropout", false, {.dropout = true});
    recurrence("_groups_dropout", true, {3, true, true});
  }
  const auto transition = [&](const std::string& variant, bool normal, bool dropout) {
    rows.push_back({"transition", row_name(unit) + variant, [=, &unit](Engine& engine) {
                      check_transition(engine, step, unit, normal, dropout);
                    }});
  };
  transition("", false, false);
  transition("_normalized", true, unit.has_recurrent_product());
}

}  // namespace

std::vector<OpRow> recurrent_op_rows() {
  using namespace units;
  std::vector<OpRow> rows;
  std::size_t line = 0;
#define NMT_UNIT(the_name, the_variant, ...) \
  add_rows(rows, cell_step<__VA_ARGS__>, kernels::units()[line++]);
#include "units/units.def"
#undef NMT_UNIT
  const auto convolution = [&](const char* variant, bool reverse, bool continued) {
    rows.push_back({"convolution", variant,
                    [=](Engine& engine) { check_convolution(engine, reverse, continued); }});
  };
  convolution("", false, false);
  convolution("reverse", true, false);
  convolution("continued", false, true);
  return rows;
}

}  // namespace nmt::test
