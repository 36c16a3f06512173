// Rows of the op table: self-attention and rotary positions.

#include "autograd/ops/attention.h"
#include "tests/autograd/op_rows.h"
#include "tests/support/gradient_check.h"

#include <complex>

namespace nmt::test {
namespace {

// Queries, keys and values [T,B,heads,3,size] of random sentences.
struct Joined {
  std::int64_t heads, steps, batch, size;
  std::vector<std::int32_t> lengths;
  Var x;
  Row xs;

  Joined(Engine& engine, Tape& tape, std::int64_t the_heads, bool even)
      : heads(the_heads),
        steps(between(engine, 1, 7)),
        batch(between(engine, 1, 5)),
        size(even ? 2 * between(engine, 1, 4) : between(engine, 1, 7)) {
    for (std::int64_t b = 0; b < batch; ++b)
      lengths.push_back(static_cast<std::int32_t>(between(engine, 1, steps)));
    x = tape.result(engine.random({steps, batch, 3 * heads * size}));
    xs = doubles(x->value);
  }
  // What a head reads at step t: part 0 its query, 1 its key, 2 its value.
  std::size_t at(std::int64_t t, std::int64_t b, std::int64_t head, std::int64_t part) const {
    return static_cast<std::size_t>((((t * batch + b) * heads + head) * 3 + part) * size);
  }
};

Row attended(const Joined& j) {
  Row out(static_cast<std::size_t>(j.steps * j.batch * j.heads * j.size));
  for (std::int64_t b = 0; b < j.batch; ++b)
    for (std::int64_t head = 0; head < j.heads; ++head)
      for (std::int64_t t = 0; t < j.lengths[b]; ++t) {
        Row weights;
        double sum = 0;
        for (std::int64_t s = 0; s < j.lengths[b]; ++s) {
          double score = 0;
          for (std::int64_t i = 0; i < j.size; ++i)
            score += j.xs[j.at(t, b, head, 0) + i] * j.xs[j.at(s, b, head, 1) + i];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(j.size))));
          sum += weights.back();
        }
        for (std::int64_t s = 0; s < j.lengths[b]; ++s)
          for (std::int64_t i = 0; i < j.size; ++i)
            out[static_cast<std::size_t>(((t * j.batch + b) * j.heads + head) * j.size + i)] +=
                weights[s] / sum * j.xs[j.at(s, b, head, 2) + i];
      }
  return out;
}

void check_self_attention(Engine& engine, std::int64_t heads) {
  Tape tape(engine.context, true);
  Joined j(engine, tape, heads, false);
  const Var y = ops::self_attention(tape, j.x, heads, engine.ints(j.lengths, {j.batch}));
  GradientCheck check(engine, {one_function, j.size + 2 * j.steps});
  check.reads("x", j.xs, j.x);
  check.gives("y", y);
  check.run(
      tape, [&] { return attended(j); }, 48);
}

// The channels of a pair are a complex number, multiplied by e^(i angle).
void check_rotate(Engine& engine) {
  Tape tape(engine.context, true);
  Joined j(engine, tape, 2, true);
  const Var y = ops::rotate(tape, j.x, 2, ops::turns(engine.context, j.steps, j.size));
  GradientCheck check(engine, {one_rounding, 4});
  check.reads("x", j.xs, j.x);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out = j.xs;
    const std::int64_t half = j.size / 2;
    for (std::int64_t t = 0; t < j.steps; ++t)
      for (std::int64_t b = 0; b < j.batch; ++b)
        for (std::int64_t head = 0; head < 2; ++head)
          for (const std::int64_t part : {0, 1})
            for (std::int64_t i = 0; i < half; ++i) {
              const std::size_t at = j.at(t, b, head, part) + static_cast<std::size_t>(i);
              const double angle =
                  static_cast<double>(t) * std::pow(10000.0, -static_cast<double>(i) / half);
              const std::complex<double> turned =
                  std::complex<double>(j.xs[at], j.xs[at + half]) * std::polar(1.0, angle);
              out[at] = turned.real();
              out[at + half] = turned.imag();
            }
    return out;
  });
}

}  // namespace

std::vector<OpRow> self_attention_op_rows() {
  return {{"self_attention", "1_head", [](Engine& e) { check_self_attention(e, 1); }},
          {"self_attention", "3_heads", [](Engine& e) { check_self_attention(e, 3); }},
          {"rotate", "", check_rotate}};
}

}  // namespace nmt::test
