// Rows of the op table: linear layers, rows and columns, normalization, point-wise ops, loss.

#include "autograd/ops/linear.h"
#include "autograd/ops/losses.h"
#include "autograd/ops/plain.h"
#include "kernels/softmax_loss.h"
#include "tests/autograd/op_rows.h"
#include "tests/support/gradient_check.h"

namespace nmt::test {
namespace {

// Three dimensions, or two.
Shape rows_of(Engine& engine, std::int64_t width) {
  if (engine.rng.below(2)) return {between(engine, 1, 5), between(engine, 1, 9), width};
  return {between(engine, 1, 40), width};
}

void check_linear(Engine& engine, bool with_bias, bool for_attention = false) {
  const std::int64_t k = between(engine, 1, 40), n = between(engine, 1, 40);
  Tape tape(engine.context, true);
  Parameter weight = engine.parameter("weight", {k, n}), bias = engine.parameter("bias", {n});
  const Var x = tape.result(engine.random(rows_of(engine, k)));
  const std::int64_t rows = x->value.rows();
  const Var y = for_attention ? ops::linear_for_attention(tape, x, weight)
                              : ops::linear(tape, x, weight, with_bias ? &bias : nullptr);
  Row xs = doubles(x->value), w = doubles(weight.value), b = doubles(bias.value);
  GradientCheck check(engine, {one_rounding, std::max({k, n, rows}) + 1});
  check.reads("x", xs, x);
  check.reads("weight", w, weight);
  if (with_bias) check.reads("bias", b, bias);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out = product(xs, w, k, n);
    for (std::size_t i = 0; with_bias && i < out.size(); ++i) out[i] += b[i % n];
    return out;
  });
}

void check_block_linear(Engine& engine, bool with_bias) {
  const std::int64_t groups = between(engine, 1, 4), planes = between(engine, 1, 3),
                     k = between(engine, 1, 9), n = between(engine, 1, 9);
  const std::int64_t in = groups * k, width = planes * groups * n;
  Tape tape(engine.context, true);
  Parameter weight = engine.parameter("weight", {groups, k, planes * n}),
            bias = engine.parameter("bias", {width});
  const Var x = tape.result(engine.random(rows_of(engine, in)));
  const std::int64_t rows = x->value.rows();
  const Var y =
      ops::block_linear(tape, x, weight, static_cast<int>(planes), with_bias ? &bias : nullptr);
  Row xs = doubles(x->value), w = doubles(weight.value), b = doubles(bias.value);
  GradientCheck check(engine, {one_rounding, std::max({k, planes * n, rows}) + 1});
  check.reads("x", xs, x);
  check.reads("weight", w, weight);
  if (with_bias) check.reads("bias", b, bias);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out(rows * width);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t p = 0; p < planes; ++p)
        for (std::int64_t g = 0; g < groups; ++g)
          for (std::int64_t j = 0; j < n; ++j) {
            const std::int64_t column = (p * groups + g) * n + j;
            double sum = with_bias ? b[column] : 0.0;
            for (std::int64_t i = 0; i < k; ++i)
              sum += xs[r * in + g * k + i] * w[(g * k + i) * planes * n + p * n + j];
            out[r * width + column] = sum;
          }
    return out;
  });
}

void check_rearrange(Engine& engine) {
  const std::int64_t groups = between(engine, 1, 5), each = between(engine, 1, 7),
                     width = groups * each;
  Tape tape(engine.context, true);
  const Var x = tape.result(engine.random(rows_of(engine, width)));
  const Var y = ops::rearrange(tape, x, groups);
  Row xs = doubles(x->value);
  GradientCheck check(engine, {one_rounding, 1});
  check.reads("x", xs, x);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out(xs.size());
    for (std::size_t at = 0; at < xs.size(); at += width)
      for (std::int64_t g = 0; g < groups; ++g)
        for (std::int64_t j = 0; j < each; ++j) out[at + j * groups + g] = xs[at + g * each + j];
    return out;
  });
}

// Symbols that occur several times, and some that do not occur.
void check_embedding(Engine& engine) {
  const std::int64_t symbols = between(engine, 2, 12), width = between(engine, 1, 20),
                     steps = between(engine, 1, 6), batch = between(engine, 1, 6);
  Tape tape(engine.context, true);
  Parameter table = engine.parameter("table", {symbols, width});
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < steps * batch; ++i)
    ids.push_back(static_cast<std::int32_t>(between(engine, 0, symbols - 1)));
  const Var y = ops::embedding(tape, table, ops::send_symbols(tape, ids, {steps, batch}));
  Row rows = doubles(table.value);
  GradientCheck check(engine, {one_rounding, steps * batch});
  check.reads("table", rows, table);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out;
    for (const std::int32_t id : ids)
      out.insert(out.end(), &rows[id * width], &rows[id * width] + width);
    return out;
  });
}

// Rows that are read several times, and some that are not read.
void check_gather_rows(Engine& engine) {
  const std::int64_t rows = between(engine, 2, 12), width = between(engine, 1, 20),
                     steps = between(engine, 1, 6), batch = between(engine, 1, 6);
  Tape tape(engine.context, true);
  const Var x = tape.result(engine.random({rows, width}));
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < steps * batch; ++i)
    ids.push_back(static_cast<std::int32_t>(between(engine, 0, rows - 1)));
  const Var y = ops::gather_rows(tape, x, ops::send_symbols(tape, ids, {steps, batch}));
  Row xs = doubles(x->value);
  GradientCheck check(engine, {one_rounding, steps * batch});
  check.reads("x", xs, x);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out;
    for (const std::int32_t id : ids)
      out.insert(out.end(), &xs[id * width], &xs[id * width] + width);
    return out;
  });
}

void check_layer_norm(Engine& engine) {
  const std::int64_t planes = between(engine, 1, 4), width = between(engine, 5, 24),
                     all = planes * width;
  Tape tape(engine.context, true);
  Parameter gain = engine.parameter("gain", {all}, 0.3f, 1.0f),
            bias = engine.parameter("bias", {all}, 0.3f);
  const Var x = tape.result(engine.random(rows_of(engine, all)));
  const std::int64_t rows = x->value.rows();
  Row xs = doubles(x->value), g = doubles(gain.value), b = doubles(bias.value);
  const Var y = ops::layer_norm(tape, x, gain, bias, static_cast<int>(planes));
  GradientCheck check(engine, {one_rounding, width + rows});
  check.reads("x", xs, x);
  check.reads("gain", g, gain);
  check.reads("bias", b, bias);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out = xs;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t p = 0; p < planes; ++p)
        normalize(&out[r * all + p * width], width, &g[p * width], &b[p * width]);
    return out;
  });
}

void check_linear_norm(Engine& engine) {
  const std::int64_t k = between(engine, 4, 20), planes = between(engine, 1, 3),
                     width = between(engine, 8, 16), all = planes * width;
  Tape tape(engine.context, true);
  Parameter weight = engine.parameter("weight", {k, all}),
            gain = engine.parameter("gain", {all}, 0.3f, 1.0f),
            bias = engine.parameter("bias", {all}, 0.3f);
  const Var x = tape.result(engine.random(rows_of(engine, k)));
  const std::int64_t rows = x->value.rows();
  Row xs = doubles(x->value), w = doubles(weight.value), g = doubles(gain.value),
      b = doubles(bias.value);
  const Var y = ops::linear_norm(tape, x, weight, gain, bias, static_cast<int>(planes));
  GradientCheck check(engine, {8 * one_rounding, k * (width + rows)});
  check.reads("x", xs, x);
  check.reads("weight", w, weight);
  check.reads("gain", g, gain);
  check.reads("bias", b, bias);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out = product(xs, w, k, all);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t p = 0; p < planes; ++p)
        normalize(&out[r * all + p * width], width, &g[p * width], &b[p * width]);
    return out;
  });
}

// As check_dropout() for the mask.
void check_residual_norm(Engine& engine, float p) {
  const std::int64_t k = between(engine, 4, 20), width = between(engine, 8, 16);
  const Shape shape{between(engine, 1, 5), between(engine, 1, 6), width};
  Parameter weight = engine.parameter("weight", {k, width}),
            gain = engine.parameter("gain", {width}, 0.3f, 1.0f),
            bias = engine.parameter("bias", {width}, 0.3f);
  Tensor ones = engine.context.empty(shape);
  std::fill_n(ones.f32(), ones.elements(), 1.0f);
  Tape other(engine.context, true, 7, 3), tape(engine.context, true, 7, 3);
  const Row mask = doubles(ops::dropout(other, other.result(ones), p)->value);
  const Var x = tape.result(engine.random(shape)),
            h = tape.result(engine.random(shape.with_last(k)));
  const std::int64_t rows = shape.rows();
  Row xs = doubles(x->value), hs = doubles(h->value), w = doubles(weight.value),
      g = doubles(gain.value), b = doubles(bias.value);
  const Var y = ops::residual_norm(tape, x, h, weight, gain, bias, p);
  GradientCheck check(engine, {8 * one_rounding, k * (width + rows)});
  check.reads("x", xs, x);
  check.reads("h", hs, h);
  check.reads("weight", w, weight);
  check.reads("gain", g, gain);
  check.reads("bias", b, bias);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out = product(hs, w, k, width);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = xs[i] + (mask[i] == 0 ? 0.0 : out[i] / (1.0 - p));
    for (std::int64_t r = 0; r < rows; ++r) normalize(&out[r * width], width, &g[0], &b[0]);
    return out;
  });
}

// The mask is read off the same dropout of ones; tests/autograd/dropout_test.cpp looks at masks.
void check_dropout(Engine& engine, bool shared) {
  const Shape shape{between(engine, 1, 5), between(engine, 1, 6), between(engine, 1, 30)};
  const float p = 0.3f;
  const auto drop = [&](Tape& tape, const Var& x) {
    if (shared) tape.share_dropout_over_steps();
    return ops::dropout(tape, x, p);
  };
  Tensor ones = engine.context.empty(shape);
  std::fill_n(ones.f32(), ones.elements(), 1.0f);
  Tape other(engine.context, true, 7, 3), tape(engine.context, true, 7, 3);
  const Row mask = doubles(drop(other, other.result(ones))->value);
  const Var x = tape.result(engine.random(shape));
  const Var y = drop(tape, x);
  Row xs = doubles(x->value);
  GradientCheck check(engine, {one_rounding, 2});
  check.reads("x", xs, x);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out = xs;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] *= mask[i] == 0 ? 0.0 : 1 / (1.0 - p);
    return out;
  });
}

void check_add(Engine& engine) {
  Tape tape(engine.context, true);
  const Shape shape = rows_of(engine, between(engine, 1, 30));
  const Var x = tape.result(engine.random(shape)), y = tape.result(engine.random(shape));
  const Var z = ops::add(tape, x, y);
  Row xs = doubles(x->value), ys = doubles(y->value);
  GradientCheck check(engine, {one_rounding, 1});
  check.reads("x", xs, x);
  check.reads("y", ys, y);
  check.gives("z", z);
  check.run(tape, [&] {
    Row out = xs;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += ys[i];
    return out;
  });
}

void check_scale(Engine& engine) {
  Tape tape(engine.context, true);
  const Var x = tape.result(engine.random(rows_of(engine, between(engine, 1, 30))));
  const Var y = ops::scale(tape, x, 2.75f);
  Row xs = doubles(x->value);
  GradientCheck check(engine, {one_rounding, 1});
  check.reads("x", xs, x);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out = xs;
    for (double& v : out) v *= 2.75;
    return out;
  });
}

void check_tanh(Engine& engine) {
  Tape tape(engine.context, true);
  const Var x = tape.result(engine.random(rows_of(engine, between(engine, 4, 40))));
  Row xs = doubles(x->value);
  const Var y = ops::tanh(tape, x);
  GradientCheck check(engine, {one_function, 2});
  check.reads("x", xs, x);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out;
    for (const double v : xs) out.push_back(std::tanh(v));
    return out;
  });
}

double activated(kernels::Activation kind, double x) {
  switch (kind) {
    case kernels::Activation::relu: return std::max(x, 0.0);
    case kernels::Activation::silu: return x / (1 + std::exp(-x));
    default: break;
  }
  const double pi = std::acos(-1.0);
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * std::pow(x, 3))));
}

void check_gate(Engine& engine, kernels::Activation kind, bool with_input) {
  Tape tape(engine.context, true);
  const Shape shape = rows_of(engine, between(engine, 4, 40));
  const Var g = tape.result(engine.random(shape, 2)), x = tape.result(engine.random(shape));
  Row gs = doubles(g->value), xs = doubles(x->value);
  const Var y = ops::gate(tape, kind, g, with_input ? x : nullptr);
  GradientCheck check(engine, {one_function, 4});
  check.reads("g", gs, g);
  if (with_input) check.reads("x", xs, x);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out;
    for (std::size_t i = 0; i < gs.size(); ++i)
      out.push_back(activated(kind, gs[i]) * (with_input ? xs[i] : 1));
    return out;
  });
}

void check_concat(Engine& engine) {
  Tape tape(engine.context, true);
  const std::int64_t rows = between(engine, 1, 20), parts = between(engine, 1, 4);
  std::vector<Var> vars;
  std::vector<Row> values;
  for (std::int64_t i = 0; i < parts; ++i) {
    vars.push_back(tape.result(engine.random({rows, between(engine, 1, 12)})));
    values.push_back(doubles(vars.back()->value));
  }
  const Var y = ops::concat(tape, vars);
  GradientCheck check(engine, {one_rounding, 1});
  for (std::int64_t i = 0; i < parts; ++i)
    check.reads("part " + std::to_string(i), values[i], vars[i]);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out;
    for (std::int64_t r = 0; r < rows; ++r)
      for (const Row& part : values) {
        const std::size_t width = part.size() / rows;
        out.insert(out.end(), &part[r * width], &part[r * width] + width);
      }
    return out;
  });
}

void check_select_rows(Engine& engine) {
  Tape tape(engine.context, true);
  const std::int64_t width = between(engine, 1, 20);
  const Var x = tape.result(engine.random(rows_of(engine, width)));
  std::vector<std::int32_t> rows;  // some of them, from the last to the first
  for (std::int64_t r = x->value.rows() - 1; r >= 0; --r)
    if (r == 0 || engine.rng.below(2)) rows.push_back(static_cast<std::int32_t>(r));
  const auto count = static_cast<std::int64_t>(rows.size());
  const Var y = ops::select_rows(tape, x, engine.ints(rows, {count}));
  Row xs = doubles(x->value);
  GradientCheck check(engine, {one_rounding, 1});
  check.reads("x", xs, x);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out;
    for (const std::int32_t r : rows) out.insert(out.end(), &xs[r * width], &xs[r * width] + width);
    return out;
  });
}

void check_step(Engine& engine) {
  Tape tape(engine.context, true);
  const Shape shape{between(engine, 1, 6), between(engine, 1, 6), between(engine, 1, 20)};
  const std::int64_t t = between(engine, 0, shape[0] - 1), size = shape[1] * shape[2];
  const Var x = tape.result(engine.random(shape));
  const Var y = ops::step(tape, x, t);
  Row xs = doubles(x->value);
  GradientCheck check(engine, {one_rounding, 1});
  check.reads("x", xs, x);
  check.gives("y", y);
  check.run(tape, [&] { return Row(&xs[t * size], &xs[t * size] + size); });
}

// The gradient is that of the smoothed sum: the direction is 1 there. The last row has no target.
void check_softmax_loss(Engine& engine, float smoothing, bool with_bias) {
  const std::int64_t rows = between(engine, 2, 40), width = between(engine, 1, 20),
                     symbols = between(engine, 3, 40);
  Tape tape(engine.context, true);
  Parameter table = engine.parameter("table", {symbols, width}, 0.5f),
            bias = engine.parameter("bias", {symbols}, 0.5f);
  const Var x = tape.result(engine.random({rows, width}));
  std::vector<std::int32_t> targets;
  for (std::int64_t r = 0; r + 1 < rows; ++r)
    targets.push_back(static_cast<std::int32_t>(between(engine, 0, symbols - 1)));
  targets.push_back(kernels::no_target);
  Tensor sums = engine.context.empty({2}, Dtype::f64);
  std::fill_n(sums.data<double>(), 2, 0.0);
  Row xs = doubles(x->value), w = doubles(table.value), b = doubles(bias.value);
  GradientCheck check(engine, {one_function, std::max({rows, width, symbols})});
  check.reads("x", xs, x);
  check.reads("table", w, table);
  if (with_bias) check.reads("bias", b, bias);
  ops::softmax_loss(tape, x, table, with_bias ? &bias : nullptr, engine.ints(targets, {rows}),
                    smoothing, sums);
  check.gives("sums", Row(sums.data<double>(), sums.data<double>() + 2), {0, 1});
  check.run(tape, [&] {
    const double s = smoothing, other = s / static_cast<double>(symbols), label = 1 - s + other;
    double entropy = -label * std::log(label);
    if (s > 0) entropy -= static_cast<double>(symbols - 1) * other * std::log(other);
    Row out(2);
    for (std::int64_t r = 0; r + 1 < rows; ++r) {
      Row logits(symbols);
      double total = 0;
      for (std::int64_t v = 0; v < symbols; ++v) {
        logits[v] = with_bias ? b[v] : 0.0;
        for (std::int64_t i = 0; i < width; ++i) logits[v] += xs[r * width + i] * w[v * width + i];
        total += std::exp(logits[v]);
      }
      const double log_total = std::log(total);
      out[0] += log_total - logits[targets[r]];
      for (std::int64_t v = 0; v < symbols; ++v)
        out[1] += (v == targets[r] ? label : other) * (log_total - logits[v]);
      out[1] -= entropy;
    }
    return out;
  });
}

}  // namespace

std::vector<OpRow> plain_op_rows() {
  return {
      {"linear", "", [](Engine& e) { check_linear(e, false); }},
      {"linear", "bias", [](Engine& e) { check_linear(e, true); }},
      {"linear_for_attention", "", [](Engine& e) { check_linear(e, false, true); }},
      {"block_linear", "", [](Engine& e) { check_block_linear(e, false); }},
      {"block_linear", "bias", [](Engine& e) { check_block_linear(e, true); }},
      {"rearrange", "", check_rearrange},
      {"embedding", "", check_embedding},
      {"gather_rows", "", check_gather_rows},
      {"layer_norm", "", check_layer_norm},
      {"linear_norm", "", check_linear_norm},
      {"residual_norm", "", [](Engine& e) { check_residual_norm(e, 0.0f); }},
      {"residual_norm", "dropout", [](Engine& e) { check_residual_norm(e, 0.3f); }},
      {"dropout", "", [](Engine& e) { check_dropout(e, false); }},
      {"dropout", "shared_over_steps", [](Engine& e) { check_dropout(e, true); }},
      {"add", "", check_add},
      {"scale", "", check_scale},
      {"tanh", "", check_tanh},
      {"gate", "relu", [](Engine& e) { check_gate(e, kernels::Activation::relu, false); }},
      {"gate", "relu_input", [](Engine& e) { check_gate(e, kernels::Activation::relu, true); }},
      {"gate", "silu", [](Engine& e) { check_gate(e, kernels::Activation::silu, false); }},
      {"gate", "silu_input", [](Engine& e) { check_gate(e, kernels::Activation::silu, true); }},
      {"gate", "gelu_input", [](Engine& e) { check_gate(e, kernels::Activation::gelu, true); }},
      {"concat", "", check_concat},
      {"select_rows", "", check_select_rows},
      {"step", "", check_step},
      {"softmax_loss", "", [](Engine& e) { check_softmax_loss(e, 0.0f, false); }},
      {"softmax_loss", "bias", [](Engine& e) { check_softmax_loss(e, 0.0f, true); }},
      {"softmax_loss", "smoothed", [](Engine& e) { check_softmax_loss(e, 0.1f, true); }},
  };
}

}  // namespace nmt::test
