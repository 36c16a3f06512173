#include "app/compute/workers.h"

#include <memory>

#include <gtest/gtest.h>

namespace nmt::app {
namespace {

ComputeSpec spec_of(int threads, int workers) {
  ComputeSpec spec;
  spec.device = "cpu";
  spec.cpu_threads = threads;
  spec.workers = workers;
  return spec;
}

TEST(Workers, ShareTheThreadsAmongFewBatches) {
  Compute compute(spec_of(9, 0));
  int made = 0;
  const Workers workers(compute, [&](const Context&) {
    ++made;
    return std::shared_ptr<StepScorer>();
  });
  const Crew& crew = workers.crew();
  ASSERT_EQ(crew.size(), 9);
  EXPECT_EQ(made, 9);
  struct Case {
    std::size_t batches, workers;
    int threads;
  };
  for (const Case& c : {Case{2, 2, 4}, {3, 4, 2}, {4, 4, 2}}) {
    const std::span<const Worker> wide = crew.widened(c.batches);
    ASSERT_EQ(wide.size(), c.workers) << c.batches;
    for (const Worker& worker : wide) EXPECT_EQ(worker.cpu.pool->size(), c.threads) << c.batches;
  }
  EXPECT_EQ(made, 9 + 2 + 4) << "they are made once";
}

TEST(Workers, OfAnOptionKeepTheirThreads) {
  Compute compute(spec_of(1, 8));
  const Workers workers(compute, [](const Context&) { return std::shared_ptr<StepScorer>(); });
  EXPECT_EQ(workers.crew().size(), 8);
  EXPECT_FALSE(workers.crew().widened);
}

}  // namespace
}  // namespace nmt::app
