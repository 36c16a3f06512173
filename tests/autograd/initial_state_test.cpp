#include "autograd/ops/recurrent.h"
#include "tests/support/cells.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using test::CellParameters;
using test::make;

// Where h follows from c, an initial state is c alone and its gradient is that of both.
TEST(Recurrence, AnInitialStateIsCompleted) {
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

// Without an initial state, a layer starts from the state vectors that the unit states.
TEST(Recurrence, StartsFromTheStatesOfTheUnit) {
  int others = 0;
  for (const kernels::Unit& unit : kernels::units()) {
    const std::int64_t h = 5, batch = 2, steps = 3;
    test::Engine engine(1);
    CellParameters p;
    make(engine, unit, h, false, p);
    Tape tape(engine.context, true);
    const Var x = tape.result(engine.random({steps, batch, unit.inputs * h}));
    std::vector<Var> start;
    for (int s = 0; s < unit.states; ++s) {
      Tensor state = engine.context.empty({batch, h});
      std::fill_n(state.f32(), batch * h, unit.state_start(s));
      others += unit.state_start(s) != 0;
      start.push_back(tape.constant(state));
    }
    const Var without = ops::recurrence(tape, p.cell, x, {}, {}, false)[0],
              with = ops::recurrence(tape, p.cell, x, start, {}, false)[0];
    for (std::int64_t i = 0; i < steps * batch * h; ++i)
      EXPECT_EQ(without->value.f32()[i], with->value.f32()[i]) << unit.name << ' ' << i;
  }
  EXPECT_GT(others, 0);  // slstm
}

}  // namespace
}  // namespace nmt
