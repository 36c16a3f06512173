// Recurrences of element-wise units over few long sentences, whose channels the threads share.

#include "core/rng.h"
#include "core/threads/thread_pool.h"
#include "kernels/recurrent/recurrence.h"
#include "tests/kernels/guarded_memory.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using Floats = test::Guarded<float>;

struct Results {
  Floats states, dx, dinitial, dvectors, dpositions;
};

Results run(const kernels::Unit& unit, int threads, bool reverse) {
  constexpr std::int64_t steps = 90, batch = 2, h = 200, rows = steps * batch, positions = 5;
  ThreadPool pool(threads);
  const Cpu cpu{&pool};
  Rng rng(11);
  const auto draw = [&](std::int64_t n) {
    Floats v(static_cast<std::size_t>(n));
    for (float& x : v) x = rng.normal();
    return v;
  };
  const Floats x = draw(rows * unit.inputs * h), vectors = draw(unit.vectors * h + 1),
               table = draw(positions * unit.position_vectors * h + 1), dh = draw(rows * h),
               initial = draw(unit.states * batch * h);
  Floats mask(rows, 1.0f);
  for (std::int64_t t = 40; t < 60; ++t) mask[static_cast<std::size_t>(t * batch + 1)] = 0.0f;
  Results r{Floats(static_cast<std::size_t>(unit.states * rows * h)),
            Floats(static_cast<std::size_t>(rows * unit.inputs * h), 9.0f),
            Floats(static_cast<std::size_t>(unit.states * batch * h), 9.0f), Floats(vectors.size()),
            Floats(table.size())};
  kernels::Recurrence a;
  a.cell.unit = &unit;
  a.cell.width = h;
  a.cell.vectors = vectors.data();
  if (unit.position_vectors > 0) {
    a.cell.positions = table.data();
    a.cell.position_rows = positions;
  }
  a.steps = steps;
  a.batch = batch;
  a.reverse = reverse;
  a.x = x.data();
  a.mask = mask.data();
  kernels::RecurrenceGradient g;
  for (int p = 0; p < unit.states; ++p) {
    a.initial[p] = initial.data() + p * batch * h;
    a.states[p] = r.states.data() + p * rows * h;
    g.dinitial[p] = r.dinitial.data() + p * batch * h;
  }
  Floats scratch(static_cast<std::size_t>(kernels::recurrence_scratch(cpu, a)) + 1, 9.0f);
  g.dh = dh.data();
  g.cell.dx = r.dx.data();
  g.cell.dvectors = r.dvectors.data();
  g.cell.dpositions = r.dpositions.data();
  g.scratch = scratch.data();
  kernels::recurrence_forward(cpu, a);
  kernels::recurrence_backward(cpu, a, g);
  return r;
}

// 200 channels are three slices of 64 and one of 8, so three threads have 64, 64 and 72.
TEST(LongSentences, ThreadsComputeTheBitsOfOne) {
  for (const kernels::Unit& unit : kernels::units()) {
    if (unit.has_recurrent_product()) continue;
    for (const bool reverse : {false, true}) {
      SCOPED_TRACE(std::string(unit.name) + " " + unit.variant + (reverse ? " reverse" : ""));
      const Results one = run(unit, 1, reverse), three = run(unit, 3, reverse);
      EXPECT_EQ(one.states, three.states);
      EXPECT_EQ(one.dx, three.dx);
      EXPECT_EQ(one.dinitial, three.dinitial);
      EXPECT_EQ(one.dvectors, three.dvectors);
      EXPECT_EQ(one.dpositions, three.dpositions);
    }
  }
}

}  // namespace
}  // namespace nmt
