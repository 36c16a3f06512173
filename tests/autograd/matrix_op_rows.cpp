// Rows of the op table: matrix_recurrence, for every matrix-state unit. The reference is the scan
// in double, whose equations and gradients tests/kernels/matrix_state_unit_test.cpp checks: these
// rows check the op's operands, masks and directions, and the float kernels.

#include "autograd/ops/recurrent.h"
#include "kernels/recurrent/matrix_scan.h"
#include "tests/autograd/op_rows.h"
#include "tests/support/gradient_check.h"
#include "units/all.h"

namespace nmt::test {
namespace {

constexpr std::size_t samples = 6;

template <class U>
void check_matrix_recurrence(Engine& engine, const kernels::Unit& unit, bool continued) {
  const std::int64_t heads = between(engine, 1, 3), width = heads * between(engine, 2, 20),
                     steps = between(engine, 1, 11), batch = between(engine, 1, 4);
  // From 2 on: a normalized key of one number has no gradient.
  const int k = static_cast<int>(between(engine, 2, 6));
  kernels::BasicMatrixRecurrence<double> a;
  a.unit = &unit;
  a.steps = steps, a.batch = batch, a.width = width, a.heads = heads;
  a.state_width = k;
  a.reverse = engine.rng.below(2) == 0;
  Tensor mask = engine.context.empty({steps, batch});
  for (std::int64_t i = 0; i < steps * batch; ++i)
    mask.f32()[i] = engine.rng.below(4) > 0 ? 1.0f : 0.0f;
  a.mask = mask.f32();

  Tape tape(engine.context, true);
  const Var x = tape.result(engine.random({steps, batch, unit.inputs * width})),
            shared = tape.result(engine.random({steps, batch, a.shared_width()}));
  Parameter vectors = engine.parameter("vectors", {std::max(unit.vectors, 1) * width}),
            rows = engine.parameter("rows", {std::max(unit.matrix_state->rows, 1) * k, width});
  ops::Cell cell;
  cell.name = "layer";
  cell.unit = &unit;
  cell.width = width, cell.heads = heads;
  cell.state_width = k;
  if (unit.vectors > 0) cell.vectors = &vectors;
  if (unit.matrix_state->rows > 0) cell.rows = &rows;
  std::vector<Var> initial;
  if (continued)
    initial = {tape.result(engine.random({batch, width})),
               tape.result(engine.random({batch, a.memory_width()}))};

  Row xs = doubles(x->value), of_heads = doubles(shared->value), v = doubles(vectors.value),
      r = doubles(rows.value), h_before(batch * width), memory_before(batch * a.memory_width());
  if (continued) h_before = doubles(initial[0]->value), memory_before = doubles(initial[1]->value);
  const std::vector<Var> out =
      ops::matrix_recurrence(tape, cell, x, shared, initial, mask, a.reverse);
  GradientCheck check(engine, {one_function, steps * (width + k + batch)});
  check.reads("x", xs, x);
  check.reads("shared", of_heads, shared);
  if (cell.vectors) check.reads("vectors", v, vectors);
  if (cell.rows) check.reads("rows", r, rows);
  if (continued) check.reads("h before", h_before, initial[0]);
  // The scale that a head remembers (mlstm) is a constant: no gradient passes through it.
  if (continued && unit.matrix_state->memory_scalars == 0)
    check.reads("memory before", memory_before, initial[1]);
  check.gives("h", out[0]);
  check.run(
      tape,
      [&] {
        Row h(steps * batch * width), memory(memory_before.size()),
            record(batch * heads * steps * units::head_output<U>(k));
        kernels::BasicMatrixRecurrence<double> now = a;
        now.x = xs.data(), now.shared = of_heads.data();
        now.vectors = v.data(), now.rows = r.data();
        now.h_before = h_before.data(), now.memory_before = memory_before.data();
        now.h = h.data(), now.memory = memory.data(), now.record = record.data();
        for (std::int64_t b = 0; b < batch; ++b)
          for (std::int64_t head = 0; head < heads; ++head)
            kernels::MatrixScan<double, U>(now, b, head).forward();
        return h;
      },
      samples);
}

template <class U>
void add_rows(std::vector<OpRow>& rows, const kernels::Unit& unit) {
  for (const bool continued : {false, true})
    rows.push_back({"matrix_recurrence", std::string(unit.name) + (continued ? "_continued" : ""),
                    [&unit, continued](Engine& engine) {
                      check_matrix_recurrence<U>(engine, unit, continued);
                    }});
}

}  // namespace

std::vector<OpRow> matrix_op_rows() {
  using namespace units;
  std::vector<OpRow> rows;
  std::size_t line = 0;
#define NMT_UNIT(...)
#define NMT_MATRIX_STATE_UNIT(the_name, the_variant, ...) \
  add_rows<__VA_ARGS__>(rows, kernels::matrix_state_units()[line++]);
#include "units/units.def"
#undef NMT_UNIT
  return rows;
}

}  // namespace nmt::test
