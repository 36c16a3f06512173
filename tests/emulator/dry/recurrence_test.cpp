// Launches of a layer of a matrix unit, with a product and a kernel per step and persistently, and
// of an element-wise unit, in chunks and not.

#include "kernels/recurrent/recurrence.h"

#include "dry/dry_run.h"
#include "kernels/recurrent/matrix_state.h"
#include "kernels/recurrent/persistent.h"
#include "tensor/cuda_device.h"

#include <string>
#include <string_view>
#include <tuple>

#include <gtest/gtest.h>

namespace nmt::test {
namespace {

struct Launches {
  std::int64_t forward = 0, backward = 0;
};

// A device whose launches are counted.
struct Dry {
  emulator::DryRun run;
  CudaDevice device;
  std::unique_ptr<MemorySource> source = device.memory_source();

  float* floats(std::int64_t n) {  // never freed
    return reinterpret_cast<float*>(
        source->allocate(static_cast<std::size_t>(n + 1) * sizeof(float)));
  }
  template <class Pass>
  std::int64_t launches(Pass&& pass) {
    run.clear();
    pass();
    std::int64_t calls = 0;
    for (const auto& [name, work] : run.work()) calls += work.calls;
    return calls;
  }
};

struct Sizes {
  std::int64_t width = 48, steps = 32, batch = 33;
};

Launches count(const kernels::Unit& unit, PersistentUse use, const Sizes& sizes = {},
               bool chunks = true) {
  const std::int64_t h = sizes.width, steps = sizes.steps, batch = sizes.batch,
                     rows = steps * batch;
  Dry dry;
  dry.device.set_persistent(use);
  dry.device.set_chunks(chunks);
  const auto floats = [&](std::int64_t n) { return dry.floats(n); };
  const std::int64_t r = unit.recurrents, l = unit.late;
  kernels::Recurrence a;
  a.cell.unit = &unit;
  a.cell.width = h;
  a.cell.recurrent = static_cast<const float*>(floats(h * r * h));
  a.cell.late = static_cast<const float*>(floats(h * (l + 1) * h));
  a.cell.recurrent_transposed = floats(h * r * h);
  a.cell.late_transposed = floats(h * (l + 1) * h);
  a.cell.bias = floats((r + l) * h);
  a.cell.vectors = floats(unit.vectors * h + 1);
  a.steps = steps;
  a.batch = batch;
  a.x = floats(rows * unit.inputs * h);
  a.record.u = floats(rows * r * h);
  a.record.late = floats(rows * (l + 1) * h);
  a.record.late_value = floats(rows * h);
  kernels::RecurrenceGradient g;
  g.dh = floats(rows * h);
  for (int p = 0; p < unit.states; ++p) {
    a.initial[p] = floats(batch * h);
    a.states[p] = floats(rows * h);
    g.dinitial[p] = floats(batch * h);
  }
  g.cell.dx = floats(rows * unit.inputs * h);
  g.cell.du = floats(rows * r * h);
  g.cell.dlate = floats(rows * (l + 1) * h);
  const Cuda cuda = dry.device.handle();
  g.scratch = floats(kernels::recurrence_scratch(cuda, a) + 1);
  kernels::recurrence_forward(cuda, a);  // allocates the counters of barriers
  return {dry.launches([&] { kernels::recurrence_forward(cuda, a); }),
          dry.launches([&] { kernels::recurrence_backward(cuda, a, g); })};
}

TEST(DryRecurrences, PersistentOnesAreOneLaunch) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "accesses are not counted under AddressSanitizer";
#endif
  for (const kernels::Unit& unit : kernels::units()) {
    if (!unit.has_recurrent_product() || unit.vectors > 0 || unit.position_vectors > 0) continue;
    SCOPED_TRACE(std::string(unit.name) + " " + unit.variant);
    const Launches each = count(unit, PersistentUse::off), one = count(unit, PersistentUse::on);
    // A product and the unit; with a late product its input, that product and the unit.
    const int per_step = unit.late == 0 ? 2 : unit.recurrents > 0 ? 4 : 3;
    EXPECT_EQ(each.forward, 32 * per_step);
    EXPECT_EQ(each.backward, 32 * per_step + unit.states);  // the gradients of states start at 0
    EXPECT_EQ(one.forward, 1);
    EXPECT_EQ(one.backward, 1);
  }
}

// docs/design/cuda-recurrences.md: the weights of all units of width 1,024 fit into the shared
// memory of an H100, and of an H200, which has as many multiprocessors with as much of it.
TEST(DryRecurrences, AllOfWidth1024CanBePersistent) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "accesses are not counted under AddressSanitizer";
#endif
  int units = 0;
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    const emulator::DryRun run;
    CudaDevice device(0, precision);
    kernels::CellShape cell;
    cell.width = 1024;
    for (const kernels::Unit& unit : kernels::units()) {
      cell.unit = &unit;
      if (!unit.has_recurrent_product()) {
        EXPECT_NE(kernels::why_not_persistent(device.handle(), cell, 128, false), "") << unit.name;
        continue;
      }
      ++units;
      for (const auto& [groups, rearrange] :
           {std::tuple{1, false}, {2, false}, {2, true}, {4, false}, {4, true}})
        for (const bool normalizes : {false, true})
          for (const bool backward : {false, true}) {
            cell.groups = groups;
            cell.rearrange = rearrange;
            cell.normalizes = normalizes;
            EXPECT_EQ(kernels::why_not_persistent(device.handle(), cell, 128, backward), "")
                << unit.name << ' ' << unit.variant << ": "
                << (precision == Precision::bfloat16 ? "bfloat16" : "float32") << " groups "
                << groups << " rearrange " << rearrange << " normalizes " << normalizes
                << " backward " << backward;
          }
    }
  }
  EXPECT_GT(units, 0);
}

// The table's bounds for float32 are 2.5e8 and 2.0e8 multiply-adds of a step.
TEST(DryRecurrences, TheTableDecides) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "accesses are not counted under AddressSanitizer";
#endif
  for (const kernels::Unit& unit : kernels::units()) {
    if (std::string_view(unit.name) != "rnn") continue;
    for (const auto& [batch, forward, backward] :
         {std::tuple{128, 1, 1}, {880, 1, 65}, {1024, 64, 65}}) {
      const Launches found = count(unit, PersistentUse::automatic, {.width = 512, .batch = batch});
      EXPECT_EQ(found.forward, forward) << batch;
      EXPECT_EQ(found.backward, backward) << batch;
    }
  }
}

// The device of a dry run has 132 multiprocessors of 512 threads each.
TEST(DryRecurrences, FewLongSentencesAreChunks) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "accesses are not counted under AddressSanitizer";
#endif
  for (const kernels::Unit& unit : kernels::units()) {
    if (std::string_view(unit.name) != "mingru") continue;
    for (const auto& [width, steps, batch, chunks, launches] : {std::tuple{1024, 2048, 1, true, 3},
                                                                {1024, 2048, 1, false, 1},
                                                                {1024, 128, 8, true, 3},
                                                                {1024, 127, 8, true, 1},
                                                                {1024, 2048, 16, true, 3},
                                                                {1024, 2048, 17, true, 1}}) {
      const Launches found =
          count(unit, PersistentUse::off, {.width = width, .steps = steps, .batch = batch}, chunks);
      EXPECT_EQ(found.forward, launches) << steps << ' ' << batch;
      EXPECT_EQ(found.backward, launches) << steps << ' ' << batch;
    }
  }
}

Launches count(const kernels::Unit& unit, std::int64_t steps, std::int64_t batch, bool chunks) {
  Dry dry;
  dry.device.set_chunks(chunks);
  const auto floats = [&](std::int64_t n) { return dry.floats(n); };
  kernels::MatrixRecurrence a;
  a.unit = &unit;
  a.steps = steps;
  a.batch = batch;
  a.width = 1024;
  a.heads = 4;
  a.state_width = 2;
  const std::int64_t rows = steps * batch, states = a.state_width * a.width;
  const Cuda cuda = dry.device.handle();
  a.x = floats(rows * unit.inputs * a.width);
  a.shared = floats(rows * a.shared_width());
  a.vectors = floats(unit.vectors * a.width);
  a.rows = floats(states);
  a.h_before = floats(batch * a.width);
  a.memory_before = floats(batch * a.memory_width());
  a.h = floats(rows * a.width);
  a.memory = floats(batch * a.memory_width());
  a.record = floats(kernels::matrix_record(cuda, a));
  a.checkpoints = floats((rows / kernels::matrix_stride + batch) * states);
  kernels::MatrixGradient g;
  g.dh = floats(rows * a.width);
  g.dx = floats(rows * unit.inputs * a.width);
  g.dshared = floats(rows * a.shared_width());
  g.scratch = floats(kernels::matrix_scratch(cuda, a));
  return {dry.launches([&] { kernels::matrix_forward(cuda, a); }),
          dry.launches([&] { kernels::matrix_backward(cuda, a, g); })};
}

// A multiprocessor runs 16 warps, of 32 channels each: 66 chunks of one sentence, 4 of 16.
TEST(DryRecurrences, FewLongSentencesOfMatrixStatesAreChunks) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "accesses are not counted under AddressSanitizer";
#endif
  for (const kernels::Unit& unit : kernels::matrix_state_units()) {
    // P of a chunk: a diagonal; a matrix of the head.
    if (std::string_view(unit.name) != "gla" && std::string_view(unit.name) != "gdn") continue;
    for (const auto& [steps, batch, chunks, launches] : {std::tuple{128, 1, true, 4},
                                                         {128, 1, false, 2},
                                                         {127, 1, true, 2},
                                                         {128, 16, true, 4},
                                                         {128, 17, true, 2}}) {
      const Launches found = count(unit, steps, batch, chunks);
      EXPECT_EQ(found.forward, launches) << unit.name << ' ' << steps << ' ' << batch;
      EXPECT_EQ(found.backward, launches) << unit.name << ' ' << steps << ' ' << batch;
    }
  }
}

}  // namespace
}  // namespace nmt::test
