#include "core/error.h"
#include "core/number_text.h"
#include "core/rng.h"
#include "core/threads/thread_pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace nmt {

// The known-answer vectors of the Random123 distribution (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull),
            (std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, ResumesFromPosition) {
  Rng a(7, 3);
  for (int i = 0; i < 11; ++i) a();
  Rng b(a.seed(), a.stream(), a.position());
  for (int i = 0; i < 11; ++i) EXPECT_EQ(a(), b());
}

TEST(Rng, Moments) {
  Rng rng(1);
  double sum = 0, squares = 0, uniform = 0;
  const int n = 100000;
  std::vector<int> counts(10);
  for (int i = 0; i < n; ++i) {
    const double x = rng.normal();
    sum += x;
    squares += x * x;
    uniform += rng.uniform();
    ++counts[rng.below(10)];
  }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(uniform / n, 0.5, 0.005);
  for (const int count : counts) EXPECT_NEAR(count, n / 10, 500);
}

TEST(Error, MessageIsOneLine) {
  EXPECT_EQ(one_line("a\tb\r\nc\x1b[31m\x7f\u00fc"), "a b  c?[31m?\u00fc");
  try {
    fail(ExitStatus::data, "{}: damaged", "two\nlines");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "two lines: damaged");
  }
}

TEST(NumberText, GroupsAndCounts) {
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(counted(0, "line"), "0 lines");
  EXPECT_EQ(counted(1, "line"), "1 line");
  EXPECT_EQ(counted(1234, "line"), "1,234 lines");
}

TEST(ThreadPool, CoversEveryIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int n : {0, 1, 7, 64, 1000}) {
      for (const int grain : {1, 16}) {
        std::vector<int> hits(n);
        pool.parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) ++hits[i];
        });
        EXPECT_TRUE(std::all_of(hits.begin(), hits.end(), [](int h) { return h == 1; }))
            << threads << ' ' << n << ' ' << grain;
      }
    }
  }
}

// More threads than processors: most parts are claimed by the caller, some by their worker. None
// may run twice or be skipped.
TEST(ThreadPool, RunsEveryPartOfEveryCallOnce) {
  constexpr int threads = 8, calls = 3000;
  ThreadPool pool(threads);
  std::vector<std::array<int, 16>> done(threads);  // each in a cache line of its own
  for (int call = 0; call < calls; ++call) {
    pool.run([&](int worker) { ++done[static_cast<std::size_t>(worker)][0]; });
    if (call % 1000 == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // let the workers fall asleep
    for (const auto& part : done) ASSERT_EQ(part[0], call + 1);
  }
}

// The process may map 200 MB more, which fits the stacks of only some of the 1000 threads.
TEST(ThreadPool, ErrorNamesNumberOfStartedThreads) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need the address space";
#endif
  const auto start = [] {
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const auto bytes = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE)) + (rlim_t{200} << 20);
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      const ThreadPool pool(1000);
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
      std::exit(static_cast<int>(error.status()));
    }
  };
  EXPECT_EXIT(start(), testing::ExitedWithCode(1), "cannot start 1000 threads, only [0-9]+: ");
}

TEST(ThreadPool, RunsRepeatedlyAndRethrowsExceptions) {
  ThreadPool pool(3);
  std::atomic<int> calls{0};
  for (int i = 0; i < 2000; ++i) pool.run([&](int) { ++calls; });
  EXPECT_EQ(calls, 6000);
  EXPECT_THROW(pool.run([](int worker) {
    if (worker == 2) NMT_FAIL("worker {}", worker);
  }),
               Error);
  pool.run([&](int) { ++calls; });
  EXPECT_EQ(calls, 6003);
}

}  // namespace nmt
