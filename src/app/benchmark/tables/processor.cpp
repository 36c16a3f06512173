#include "app/benchmark/instruction_loops.h"
#include "app/benchmark/peak/peak.h"
#include "app/benchmark/tables/tables.h"
#include "core/thread_pool.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <unistd.h>

namespace nmt::app::bench {
namespace {

void instruction_row(Bench& bench, const InstructionLoop& loop) {
  bench.row("processor", loop.name, [&](Case& a_case) {
    // Products that one round adds to an element: 1, 2 or 4 per vector instruction, more per tile.
    double one = 0, ten = 0;
    loop.run(1, &one);
    loop.run(10, &ten);
    a_case.compare("the sum of ten rounds", ten, 10 * one, ten, 0);
    a_case.compare("the share of whole products in a sum", std::fmod(one, 1.0), 0, 1, 0);
    const std::int64_t rounds = a_case.quick() ? 100 : 20000;
    ThreadPool& pool = bench.compute().pool();
    const auto operations = static_cast<double>(loop.run(rounds, &one));
    a_case.work(operations * pool.size(), 0);
    a_case.time([&] {
      pool.run([&](int) {
        double sum;
        loop.run(rounds, &sum);
      });
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
    run_read_loop(x.f32(), std::min<std::int64_t>(n, 4096), 8, &sum);
    a_case.compare("the sum of ones", sum, static_cast<double>(std::min<std::int64_t>(n, 4096)), 1,
                   0);
    const int times = static_cast<int>(std::clamp<std::int64_t>((1 << 20) / n, 1, 64));
    a_case.work(0, 4.0 * static_cast<double>(n) * times * pool.size(), Traffic::read);
    a_case.extra("KiB per thread", static_cast<double>(n) / 256);
    a_case.time([&] {
      pool.run([&](int worker) {
        float part;
        for (int i = 0; i < times; ++i) run_read_loop(x.f32() + worker * n, n, 8, &part);
      });
    });
  });
}

}  // namespace

void processor(Bench& bench) {
  if (bench.compute().cuda()) return;
  for (const InstructionLoop& loop : instruction_loops()) instruction_row(bench, loop);
  reading_row(bench, "L1", sysconf(_SC_LEVEL1_DCACHE_SIZE), false);
  reading_row(bench, "L2", sysconf(_SC_LEVEL2_CACHE_SIZE), false);
  reading_row(bench, "L3", std::min(sysconf(_SC_LEVEL3_CACHE_SIZE), 64l << 20), true);
  reading_row(bench, "memory", static_cast<long>(2 * bench.meter().rotation()), true);
}

}  // namespace nmt::app::bench
