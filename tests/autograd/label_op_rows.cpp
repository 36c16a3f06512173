// Rows of the op table: losses of labels. The reference of the CRF enumerates all labelings.

#include "autograd/ops/losses.h"
#include "kernels/softmax_loss.h"
#include "tests/autograd/op_rows.h"
#include "tests/support/gradient_check.h"

namespace nmt::test {
namespace {

Tensor zero_sums(Engine& engine) {
  Tensor sums = engine.context.empty({2}, Dtype::f64);
  std::fill_n(sums.data<double>(), 2, 0.0);
  return sums;
}

Row row_of(const Tensor& sums) {
  return {sums.data<double>(), sums.data<double>() + 2};
}

void check_label_loss(Engine& engine, float smoothing) {
  const std::int64_t rows = between(engine, 2, 40), labels = between(engine, 2, 20);
  Tape tape(engine.context, true);
  const Var x = tape.result(engine.random({rows, labels}, 3.0f));
  std::vector<std::int32_t> targets;
  for (std::int64_t r = 0; r + 1 < rows; ++r)
    targets.push_back(static_cast<std::int32_t>(between(engine, 0, labels - 1)));
  targets.push_back(kernels::no_target);
  const Tensor sums = zero_sums(engine);
  Row xs = doubles(x->value);
  GradientCheck check(engine, {one_function, labels});
  check.reads("logits", xs, x);
  ops::label_loss(tape, x, engine.ints(targets, {rows}), smoothing, sums);
  check.gives("sums", row_of(sums), {0, 1});
  check.run(tape, [&] {
    const double s = smoothing, other = s / static_cast<double>(labels), label = 1 - s + other;
    Row out(2);
    for (std::int64_t r = 0; r + 1 < rows; ++r) {
      double total = 0;
      for (std::int64_t i = 0; i < labels; ++i) total += std::exp(xs[r * labels + i]);
      for (std::int64_t i = 0; i < labels; ++i) {
        const double loss = std::log(total) - xs[r * labels + i],
                     weight = i == targets[r] ? label : other;
        if (i == targets[r]) out[0] += loss;
        if (weight > 0) out[1] += weight * (loss + std::log(weight));
      }
    }
    return out;
  });
}

// Sentences of different lengths, one of them of one word.
void check_crf_loss(Engine& engine, float scale) {
  const std::int64_t steps = between(engine, 2, 5), sentences = between(engine, 2, 4),
                     labels = between(engine, 2, 4);
  Tape tape(engine.context, true);
  const Var x = tape.result(engine.random({steps, sentences, labels}, scale));
  Parameter transitions = engine.parameter("transitions", {labels + 2, labels}, scale);
  std::vector<std::int32_t> targets, lengths;
  for (std::int64_t i = 0; i < steps * sentences; ++i)
    targets.push_back(static_cast<std::int32_t>(between(engine, 0, labels - 1)));
  for (std::int64_t b = 0; b < sentences; ++b)
    lengths.push_back(static_cast<std::int32_t>(b == 0 ? 1 : between(engine, 1, steps)));
  const Tensor sums = zero_sums(engine);
  Row xs = doubles(x->value), u = doubles(transitions.value);
  GradientCheck check(engine, {one_function, steps});
  check.reads("emissions", xs, x);
  check.reads("transitions", u, transitions);
  ops::crf_loss(tape, x, transitions, engine.ints(targets, {steps, sentences}),
                engine.ints(lengths, {sentences}), sums);
  check.gives("sums", row_of(sums), {0, 1});
  check.run(tape, [&] {
    double loss = 0;
    for (std::int64_t b = 0; b < sentences; ++b) {
      const std::int64_t n = lengths[b];
      const auto score = [&](const std::vector<std::int64_t>& y) {
        double sum = u[labels * labels + y[0]] + u[(labels + 1) * labels + y[n - 1]];
        for (std::int64_t t = 0; t < n; ++t) {
          sum += xs[(t * sentences + b) * labels + y[t]];
          if (t > 0) sum += u[y[t - 1] * labels + y[t]];
        }
        return sum;
      };
      std::vector<std::int64_t> y(n), truth(n);
      for (std::int64_t t = 0; t < n; ++t) truth[t] = targets[t * sentences + b];
      double total = 0;
      const double reference = score(truth);
      for (bool more = true; more;) {
        total += std::exp(score(y) - reference);
        more = false;
        for (std::int64_t t = 0; t < n && !more; ++t) {
          more = ++y[t] < labels;
          if (!more) y[t] = 0;
        }
      }
      loss += std::log(total);
    }
    return Row{loss, loss};
  });
}

}  // namespace

std::vector<OpRow> label_op_rows() {
  return {
      {"label_loss", "", [](Engine& e) { check_label_loss(e, 0.0f); }},
      {"label_loss", "smoothed", [](Engine& e) { check_label_loss(e, 0.1f); }},
      {"crf_loss", "", [](Engine& e) { check_crf_loss(e, 1.0f); }},
  };
}

}  // namespace nmt::test
