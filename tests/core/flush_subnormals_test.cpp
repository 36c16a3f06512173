#include "core/math/flush_subnormals.h"

#include "core/threads/thread_pool.h"

#include <chrono>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

namespace nmt {
namespace {

// Half of the smallest normal number, by arithmetic of the calling thread.
float half_of_smallest() {
  volatile float smallest = std::numeric_limits<float>::min(), half = 0.5f;
  return smallest * half;
}
// Whether the calling thread reads a subnormal number as 0.
bool reads_zero() {
  volatile float subnormal = std::numeric_limits<float>::denorm_min(), large = 0x1p100f;
  return subnormal * large == 0.0f;
}

TEST(FlushSubnormals, CountsThemAsZeroWhileItExists) {
  EXPECT_NE(half_of_smallest(), 0.0f);
  {
    const FlushSubnormals outer;
    EXPECT_EQ(half_of_smallest(), 0.0f);
    EXPECT_TRUE(reads_zero());
    {
      const FlushSubnormals inner;
      EXPECT_EQ(half_of_smallest(), 0.0f);
    }
    EXPECT_EQ(half_of_smallest(), 0.0f) << "ended by the inner one";
  }
  EXPECT_NE(half_of_smallest(), 0.0f);
  EXPECT_FALSE(reads_zero());
}

// Whether the parts of a call that other threads computed flushed.
bool others_flush(ThreadPool& pool) {
  float halves[3] = {1, 1, 1};
  std::thread::id threads[3];
  pool.run([&](int worker) {
    // The caller computes the parts of threads that are not awake when it has done its own.
    if (worker == 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    halves[worker] = half_of_smallest();
    threads[worker] = std::this_thread::get_id();
  });
  int others = 0, flushed = 0;
  for (int worker = 1; worker < 3; ++worker)
    if (threads[worker] != threads[0]) {
      ++others;
      flushed += halves[worker] == 0.0f ? 1 : 0;
    }
  EXPECT_GT(others, 0);
  EXPECT_TRUE(flushed == 0 || flushed == others);
  return flushed > 0;
}

TEST(FlushSubnormals, ThreadsOfAPoolDoAsTheirCaller) {
  ThreadPool pool(3);
  EXPECT_FALSE(others_flush(pool));
  {
    const FlushSubnormals caller;
    EXPECT_TRUE(others_flush(pool));
    ThreadPool inner(3);  // its threads start in this mode
    EXPECT_TRUE(others_flush(inner));
  }
  EXPECT_FALSE(others_flush(pool));
}

}  // namespace
}  // namespace nmt
