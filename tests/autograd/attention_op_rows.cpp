// Rows of the op table: attention, and the conditional layer for every unit.

#include "autograd/ops/conditional.h"
#include "tests/autograd/op_rows.h"
#include "tests/autograd/recurrent_cells.h"

#include <cmath>
#include <memory>
#include <optional>
#include <string_view>

namespace nmt::test {
namespace {

constexpr std::int64_t first_position = 1;

// An encoded source of random lengths and its reference.
struct TestedMemory {
  kernels::AttentionKind kind;
  std::int64_t heads, source, batch, space, width;
  Parameter v;
  ops::Memory memory;
  Var values, keys;
  AttentionValues a;

  TestedMemory(Engine& engine, Tape& tape, bool additive, std::int64_t the_heads)
      : kind(additive ? kernels::AttentionKind::additive : kernels::AttentionKind::dot),
        heads(the_heads),
        source(between(engine, 1, 7)),
        batch(between(engine, 1, 9)),
        space(heads * between(engine, 1, 6)),
        width(heads * between(engine, 1, 6)),
        v(engine.parameter("v", {space, 1})) {
    std::vector<std::int32_t> lengths;
    for (std::int64_t b = 0; b < batch; ++b)
      lengths.push_back(static_cast<std::int32_t>(between(engine, 1, source)));
    values = tape.result(engine.random({source, batch, width}));
    keys = tape.result(engine.random({source, batch, space}));
    a = {additive,
         static_cast<std::size_t>(heads),
         static_cast<std::size_t>(source),
         static_cast<std::size_t>(batch),
         static_cast<std::size_t>(space),
         static_cast<std::size_t>(width),
         doubles(keys->value),
         doubles(values->value),
         doubles(v.value),
         {lengths.begin(), lengths.end()}};
    memory = ops::remember(tape, shape(), values, keys, engine.ints(lengths, {batch}));
  }
  ops::AttentionShape shape() { return {kind, heads, a.additive ? &v : nullptr}; }
  void read(GradientCheck& check) {
    check.reads("keys", a.keys, keys);
    check.reads("memory", a.memory, values);
    if (a.additive) check.reads("v", a.v, v);
  }
};

// Links of random target rows of one head, and their cost.
struct TestedLinks {
  std::int64_t head;
  double weight;
  std::vector<std::int32_t> offsets{0}, sources;
  Tensor cost;

  TestedLinks(Engine& engine, TestedMemory& m, std::int64_t rows)
      : head(between(engine, 0, m.heads - 1)),
        weight(static_cast<double>(between(engine, 1, 4)) / 2),
        cost(engine.context.empty({1}, Dtype::f64)) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int32_t length = m.a.lengths[row % m.batch];
      for (std::int32_t s = 0; s < length; ++s)
        if (engine.rng.below(3) == 0) sources.push_back(s);
      offsets.push_back(static_cast<std::int32_t>(sources.size()));
    }
    cost.data<double>()[0] = 0.5;  // which the op adds to
    m.memory.guide = std::make_shared<ops::AttentionGuide>(ops::AttentionGuide{
        engine.ints(offsets, {rows + 1}), engine.ints(sources, {std::ssize(sources)}),
        static_cast<int>(head), static_cast<float>(weight), cost});
  }
  void give(GradientCheck& check) const {
    check.gives("cost", Row{cost.data<double>()[0]}, Row{weight});
  }
  // Of a row with these weights [heads,S].
  double of_row(std::int64_t row, const Row& weights, std::int64_t steps) const {
    double sum = 0;
    for (std::int32_t i = offsets[row]; i < offsets[row + 1]; ++i)
      sum -= std::log(weights[head * steps + sources[i]]) / (offsets[row + 1] - offsets[row]);
    return sum;
  }
};

void append(Row& to, const Row& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void check_attention(Engine& engine, bool additive, std::int64_t heads, bool projected,
                     bool guided) {
  Tape tape(engine.context, true);
  TestedMemory m(engine, tape, additive, heads);
  const std::int64_t steps = between(engine, 1, 4),
                     width = projected ? between(engine, 1, 12) : m.width;
  Parameter output = engine.parameter("output", {m.width, width}, 0.5f);
  ops::AttentionShape shape = m.shape();
  if (projected) shape.output = &output;
  const Var query = tape.result(engine.random({steps, m.batch, m.space}));
  std::optional<TestedLinks> links;
  if (guided) links.emplace(engine, m, steps * m.batch);
  const ops::Attended out = ops::attention(tape, shape, m.memory, query, {});
  Row queries = doubles(query->value), outputs = doubles(output.value);
  GradientCheck check(engine,
                      {one_function, m.source + m.space + m.width + width + steps * m.batch});
  check.reads("query", queries, query);
  if (projected) check.reads("output", outputs, output);
  m.read(check);
  check.gives("context", out.context);
  check.gives("weights", out.weights);
  if (links) links->give(check);
  check.run(tape, [&] {
    Row contexts, weights, some;
    double cost = 0.5;
    for (std::int64_t at = 0; at < steps * m.batch; ++at) {
      const Row c = attend(m.a, at % m.batch, &queries[at * m.space], &some);
      append(contexts, projected ? product(c, outputs, m.width, width) : c);
      append(weights, some);
      if (links) cost += links->of_row(at, some, m.source);
    }
    append(contexts, weights);
    if (links) contexts.push_back(cost);
    return contexts;
  });
}

void check_conditional(Engine& engine, CellStep step, const kernels::Unit& unit, bool additive,
                       std::int64_t heads, bool normal, Blocks blocks, bool projected,
                       bool guided) {
  Tape tape(engine.context, true);
  const std::int64_t groups = blocks.groups, h = groups * between(engine, 6 / groups, 12 / groups),
                     wide = unit.inputs * h;
  TestedMemory m(engine, tape, additive, groups * heads);
  TestedCell lower, higher;
  for (TestedCell* cell : {&lower, &higher}) {
    cell->make(engine, unit, h, normal, blocks);
    cell->drop(engine, m.batch);
  }
  const std::int64_t width = projected ? groups * between(engine, 1, 8) : m.width;
  const Shape context_shape =
      groups > 1 ? Shape{groups, width / groups, wide / groups} : Shape{width, wide};
  Parameter query = engine.parameter("query", {h, m.space}, 0.5f),
            output = engine.parameter("output", {m.width, width}, 0.5f),
            context = engine.parameter("context", context_shape, 0.5f),
            bias = engine.parameter("context bias", {wide}),
            gain = engine.parameter("context gain", {wide}, 0.3f, 1.0f),
            norm_bias = engine.parameter("context norm_bias", {wide});
  ops::Conditional layer;
  layer.lower = lower.parameters.cell;
  layer.higher = higher.parameters.cell;
  layer.attention = m.shape();
  if (projected) layer.attention.output = &output;
  layer.query = &query;
  layer.context = &context;
  if (normal) {
    layer.context_gain = &gain;
    layer.context_norm_bias = &norm_bias;
  } else {
    layer.context_bias = &bias;
  }
  const std::int64_t steps = between(engine, 2, 3);
  const Var x = tape.result(engine.random({steps, m.batch, wide}));
  std::vector<Var> initial;
  for (int s = 0; s < unit.states; ++s) initial.push_back(tape.result(engine.random({m.batch, h})));
  std::optional<TestedLinks> links;
  if (guided) links.emplace(engine, m, steps * m.batch);
  const ops::ConditionalResult result =
      ops::conditional(tape, layer, m.memory, x, initial, {}, first_position);

  Row xs = doubles(x->value), queries = doubles(query.value), outputs = doubles(output.value),
      contexts = doubles(context.value), b = doubles(bias.value), g = doubles(gain.value),
      nb = doubles(norm_bias.value);
  std::vector<Row> starts;
  for (const Var& s : initial) starts.push_back(doubles(s->value));
  GradientCheck check(engine,
                      {one_function, steps * (3 * h + m.space + m.width + width + m.batch)});
  check.reads("x", xs, x);
  m.read(check);
  for (std::size_t s = 0; s < initial.size(); ++s)
    check.reads("initial state " + std::to_string(s), starts[s], initial[s]);
  check.reads("query", queries, query);
  if (projected) check.reads("output", outputs, output);
  check.reads("context", contexts, context);
  if (normal) {
    check.reads("context gain", g, gain);
    check.reads("context norm_bias", nb, norm_bias);
  } else {
    check.reads("context bias", b, bias);
  }
  lower.read(check, "lower");
  higher.read(check, "higher");
  check.gives("states", result.states[0]);
  check.gives("contexts", result.attended.context);
  if (links) links->give(check);
  check.run(
      tape,
      [&] {
        const Row matrix = dense(contexts, blocks, width, unit.inputs, h);
        Row out(steps * m.batch * (h + width));
        double* const attended = &out[steps * m.batch * h];
        double cost = 0.5;
        Row weights;
        for (std::int64_t row = 0; row < m.batch; ++row) {
          const CellValues low = lower.expanded(row), high = higher.expanded(row);
          std::vector<Row> s = states_of(starts, row, h);
          for (std::int64_t t = 0; t < steps; ++t) {
            const std::int64_t at = t * m.batch + row;
            step(low, h, &xs[at * wide], s, first_position + t);
            Row c = attend(m.a, row, product(s[0], queries, h, m.space).data(), &weights);
            if (links) cost += links->of_row(at, weights, m.source);
            if (projected) c = product(c, outputs, m.width, width);
            Row read = product(c, matrix, width, wide);
            for (std::int64_t j = 0; !normal && j < wide; ++j) read[j] += b[j];
            for (int p = 0; normal && p < unit.inputs; ++p)
              normalize(&read[p * h], h, &g[p * h], &nb[p * h]);
            step(high, h, read.data(), s, first_position + t);
            std::copy(s[0].begin(), s[0].end(), &out[at * h]);
            std::copy(c.begin(), c.end(), &attended[at * width]);
          }
        }
        if (links) out.push_back(cost);
        return out;
      },
      4);
}

void add_rows(std::vector<OpRow>& rows, CellStep step, const kernels::Unit& unit) {
  const auto add = [&](const std::string& variant, bool additive, std::int64_t heads, bool normal,
                       Blocks blocks, bool projected, bool guided = false) {
    rows.push_back({"conditional", row_name(unit) + variant, [=, &unit](Engine& engine) {
                      check_conditional(engine, step, unit, additive, heads, normal, blocks,
                                        projected, guided);
                    }});
  };
  add("", true, 1, false, {}, false);
  add("_normalized", true, 2, true, {}, false);
  add("_dot", false, 2, true, {.dropout = true}, false);
  add("_projected", true, 2, false, {}, true);
  if (std::string_view(unit.name) == "gru") {
    add("_guided", true, 2, false, {}, false, true);
    add("_guided_dot", false, 2, true, {}, true, true);
  }
  if (unit.recurrents + unit.late > 0) {
    add("_groups", true, 1, false, {2, true, true}, false);
    add("_groups_projected", false, 1, true, {2, true}, true);
  }
}

}  // namespace

std::vector<OpRow> attention_op_rows() {
  using namespace units;
  std::vector<OpRow> rows;
  for (const bool additive : {true, false})
    for (const std::int64_t heads : {1, 3})
      for (const bool projected : {false, true})
        for (const bool guided : {false, true})
          rows.push_back({"attention",
                          (additive ? "additive_" : "dot_") + std::to_string(heads) + "_heads" +
                              (projected ? "_projected" : "") + (guided ? "_guided" : ""),
                          [=](Engine& engine) {
                            check_attention(engine, additive, heads, projected, guided);
                          }});
  std::size_t line = 0;
#define NMT_UNIT(the_name, the_variant, ...) \
  add_rows(rows, cell_step<__VA_ARGS__>, kernels::units()[line++]);
#include "units/units.def"
#undef NMT_UNIT
  return rows;
}

}  // namespace nmt::test
