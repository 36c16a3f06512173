#include "autograd/tape.h"

#include "autograd/ops/linear.h"
#include "autograd/ops/plain.h"
#include "tests/support/engine.h"

#include <gtest/gtest.h>

namespace nmt {
namespace {

// A non-recording pass creates no closures: record() throws, so any inference test detects an op
// that creates one.
TEST(Tape, RejectsClosuresUnlessRecording) {
  test::Engine engine;
  Tape recording(engine.context, true), inference(engine.context, false);
  int calls = 0;
  recording.record([&] { ++calls; });
  recording.backward();
  EXPECT_EQ(calls, 1);
  EXPECT_THROW(inference.record([] {}), Error);
  EXPECT_THROW(inference.backward(), Error);
}

TEST(Tape, OpsOfInferenceRecordNothing) {
  test::Engine engine;
  Tape tape(engine.context, false);
  Parameter weight = engine.parameter("weight", {6, 6}),
            blocks = engine.parameter("blocks", {2, 3, 3}), bias = engine.parameter("bias", {6});
  const Var x = tape.constant(engine.random({2, 3, 6}));
  const Var y = ops::add(tape, ops::linear(tape, x, weight, &bias),
                         ops::block_linear(tape, ops::rearrange(tape, x, 2), blocks, 1));
  const Var z = ops::layer_norm(tape, ops::dropout(tape, ops::tanh(tape, y), 0.5f), bias, bias);
  const Var rows = ops::select_rows(tape, ops::concat(tape, {z, x}), engine.ints({5, 0}, {2}));
  EXPECT_EQ(rows->value.shape(), (Shape{2, 12}));
  EXPECT_EQ(ops::step(tape, z, 1)->value.shape(), (Shape{3, 6}));
  EXPECT_EQ(ops::embedding(tape, weight, {engine.ints({3, 4}, {2})})->value.shape(), (Shape{2, 6}));
}

// Saturated gates make subnormal numbers, which take an Intel processor 150 cycles each.
TEST(Tape, CountsSubnormalNumbersAsZero) {
  test::Engine engine;
  volatile float tiny = 1e-38f, small = 0.01f;
  {
    const Tape tape(engine.context, false);
    EXPECT_EQ(tiny * small, 0.0f);
  }
  EXPECT_NE(tiny * small, 0.0f);
}

}  // namespace
}  // namespace nmt
