#include "core/threads/task_queue.h"

#include "core/threads/thread_pool.h"

#include <atomic>
#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

namespace nmt {
namespace {

// Under the thread sanitizer, two overlapping tasks of one worker are a race on its counter.
TEST(TaskQueue, EveryTaskRunsOnceAndThoseOfAWorkerOneAfterTheOther) {
  ThreadPool pool(3);
  for (const std::size_t tasks :
       {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{50}}) {
    std::vector<int> runs(tasks);
    struct alignas(64) Counter {
      std::size_t tasks = 0, last = 0;
    };
    std::vector<Counter> counters(3);
    const auto left = run_tasks(pool, tasks, [&](int worker, std::size_t i) {
      Counter& own = counters.at(static_cast<std::size_t>(worker));
      EXPECT_TRUE(own.tasks == 0 || own.last < i);
      ++own.tasks;
      own.last = i;
      ++runs[i];
    });
    EXPECT_TRUE(left.empty());
    EXPECT_EQ(runs, std::vector<int>(tasks, 1));
    EXPECT_EQ(counters[0].tasks + counters[1].tasks + counters[2].tasks, tasks);
  }
}

TEST(TaskQueue, TasksWithoutMemoryArePutOff) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  const auto left = run_tasks(pool, 20, [&](int, std::size_t i) {
    if (i % 7 == 3) throw std::bad_alloc();
    ++done;
  });
  EXPECT_EQ(left, (std::vector<std::size_t>{3, 10, 17}));
  EXPECT_EQ(done, 17);
}

TEST(TaskQueue, AnErrorEndsTheRun) {
  ThreadPool pool(2);
  std::atomic<std::size_t> begun{0};
  EXPECT_THROW(run_tasks(pool, 1000000,
                         [&](int, std::size_t i) {
                           ++begun;
                           if (i == 5) throw std::runtime_error("five");
                         }),
               std::runtime_error);
  EXPECT_LT(begun, 1000000u);
  EXPECT_TRUE(run_tasks(pool, 3, [](int, std::size_t) {}).empty()) << "the pool is usable";
}

}  // namespace
}  // namespace nmt
