#include "app/benchmark/instruction_loops.h"
#include "app/benchmark/peak/peak.h"
#include "app/benchmark/tables/tables.h"
#include "core/threads/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace nmt::app::bench {
namespace {

struct Sustained {
  double seconds;  // of the load
  double clock;    // Hz, or 0 where no loop of known latency exists
};

// What a load that takes about `seconds` reaches for longer than a moment: slices of the load on
// all threads, about a millisecond each, and of integer multiplications of known latency take
// turns, and the medians count.
template <class Load>
Sustained sustained(Bench& bench, bool quick, double seconds, const Load& load) {
  using Steady = std::chrono::steady_clock;
  const auto slices = static_cast<std::size_t>(quick ? 2 : 200);
  const auto times = static_cast<std::int64_t>(quick ? 1 : std::ceil(1e-3 / seconds));
  std::vector<double> loads(slices), clocks(slices);
  bench.compute().pool().run([&](int worker) {
    for (std::size_t i = 0; i < slices; ++i) {
      const auto start = Steady::now();
      for (std::int64_t time = 0; time < times; ++time) load();
      const auto between = Steady::now();
      const auto cycles = static_cast<double>(run_latency_loop(20000));
      const auto end = Steady::now();
      if (worker != 0) continue;
      loads[i] = std::chrono::duration<double>(between - start).count() / times;
      clocks[i] = cycles / std::chrono::duration<double>(end - between).count();
    }
  });
  const auto median = [&](std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(slices / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  };
  return {median(loads), median(clocks)};
}

// A row of operations in registers or in the L1 cache, on all threads at once. run(rounds) returns
// their number.
template <class Run>
void operations_row(Bench& bench, Case& a_case, std::int64_t rounds, const Run& run) {
  ThreadPool& pool = bench.compute().pool();
  const double operations = static_cast<double>(run(rounds)) * pool.size();
  a_case.work(operations, 0);
  const double seconds = a_case.time([&] { pool.run([&](int) { run(rounds); }); });
  const Sustained slices = sustained(bench, a_case.quick(), seconds, [&] { run(rounds); });
  a_case.extra("sustained, GFLOP/s", 1e-9 * operations / slices.seconds);
  if (slices.clock > 0) a_case.extra("at GHz", 1e-9 * slices.clock);
}

void instruction_row(Bench& bench, const InstructionLoop& loop) {
  bench.row("processor", loop.name, [&](Case& a_case) {
    // Products that one round adds to an element: 1, 2 or 4 per vector instruction, more per tile.
    double one = 0, ten = 0;
    loop.run(1, &one);
    loop.run(10, &ten);
    a_case.compare("the sum of ten rounds", ten, 10 * one, ten, 0);
    a_case.compare("the share of whole products in a sum", std::fmod(one, 1.0), 0, 1, 0);
    operations_row(bench, a_case, a_case.quick() ? 100 : 20000, [&](std::int64_t rounds) {
      double sum;
      return loop.run(rounds, &sum);
    });
  });
}

// The clock that this thread has without vector instructions.
void integer_row(Bench& bench) {
  if (run_latency_loop(8) == 0) return;
  bench.row("processor", "integers", [&](Case& a_case) {
    constexpr std::int64_t rounds = 20000;
    ThreadPool& pool = bench.compute().pool();
    a_case.work(static_cast<double>(rounds) * pool.size(), 0);
    const double seconds = a_case.time([&] { pool.run([&](int) { run_latency_loop(rounds); }); });
    const Sustained slices =
        sustained(bench, a_case.quick(), seconds, [] { run_latency_loop(rounds); });
    a_case.extra("sustained, GFLOP/s",
                 1e-9 * static_cast<double>(rounds) * pool.size() / slices.seconds);
    a_case.extra("at GHz", 1e-9 * slices.clock);
  });
}

// The largest tile of the products in float32, of the kernels that the program loaded.
void tile_row(Bench& bench) {
  bench.row("processor", "float32 tile in L1", [&](Case& a_case) {
    operations_row(bench, a_case, a_case.quick() ? 10 : 1000, [&](std::int64_t rounds) {
      float sum;
      return run_tile_loop(rounds, &sum);
    });
  });
}

// Every thread reads a buffer of its own that fits into its share of the cache.
void reading_row(Bench& bench, const char* level, long cache, bool shared) {
  if (cache <= 0) return;
  ThreadPool& pool = bench.compute().pool();
  const std::int64_t bytes = cache / 2 / (shared ? pool.size() : 1);
  bench.row("processor", fmt::format("read {}", level), [&](Case& a_case) {
    const std::int64_t n = a_case.quick() ? 1024 : bytes / static_cast<std::int64_t>(sizeof(float));
    const Tensor x = a_case.zeros(n * pool.size());
    std::fill_n(x.f32(), x.elements(), 1.0f);
    float sum = 0;
    run_read_loop(x.f32(), std::min<std::int64_t>(n, 4096), 8, 1, &sum);
    a_case.compare("the sum of ones", sum, static_cast<double>(std::min<std::int64_t>(n, 4096)), 1,
                   0);
    const std::int64_t times = std::clamp<std::int64_t>((1 << 22) / n, 1, 1024);
    a_case.work(0, 4.0 * static_cast<double>(n * times * pool.size()), Traffic::read);
    a_case.extra("KiB per thread", static_cast<double>(n) / 256);
    a_case.time([&] {
      pool.run([&](int worker) {
        float part;
        run_read_loop(x.f32() + worker * n, n, 8, times, &part);
      });
    });
  });
}

}  // namespace

void processor(Bench& bench) {
  if (bench.compute().cuda()) return;
  integer_row(bench);
  for (const InstructionLoop& loop : instruction_loops()) instruction_row(bench, loop);
  tile_row(bench);
  reading_row(bench, "L1", sysconf(_SC_LEVEL1_DCACHE_SIZE), false);
  reading_row(bench, "L2", sysconf(_SC_LEVEL2_CACHE_SIZE), false);
  reading_row(bench, "L3", std::min(sysconf(_SC_LEVEL3_CACHE_SIZE), 64l << 20), true);
  reading_row(bench, "memory", static_cast<long>(2 * bench.meter().rotation()), true);
}

}  // namespace nmt::app::bench
