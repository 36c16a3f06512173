#include "app/benchmark/facts.h"

#include "core/threads/thread_pool.h"
#include "kernels/instruction_set.h"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

namespace nmt::app::bench {
namespace {

std::string first_word_of(const char* path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

std::string caches() {
  const auto size = [](int name) { return std::max(0l, sysconf(name)) / 1024; };
  return fmt::format("L1d {} KiB, L2 {} KiB, L3 {} KiB", size(_SC_LEVEL1_DCACHE_SIZE),
                     size(_SC_LEVEL2_CACHE_SIZE), size(_SC_LEVEL3_CACHE_SIZE));
}

}  // namespace

Facts facts(Compute& compute, const kernels::ProductMethod* products, const Clock& clock,
            const Blas& blas, const Bounds& bounds, const BenchmarkSpec& spec) {
  const std::time_t now = std::time(nullptr);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return {{"date", date},
          {"program", compute.describe("nmt-bench")},
          {"processor", processor()},
          {"processors", std::to_string(std::thread::hardware_concurrency())},
          {"caches", caches()},
          {"load", first_word_of("/proc/loadavg") + " in the last minute"},
          {"compiler", __VERSION__},
          {"kernels", kernels::instruction_set()},
          {"products",
           compute.cuda() ? "cuBLAS"
           : products
               ? products->name() + (products->is_library() ? " where it is faster, own tiles" : "")
               : "own tiles"},
          {"BLAS", blas.description()},
          {"clock", clock.name()},
          {"precision", std::string(name_of(*spec.compute.precision))},
          {"arithmetic", fmt::format("{:.1f} GFLOP/s", 1e-9 * bounds.flops)},
          {"copying", fmt::format("{:.1f} GB/s", 1e-9 * bounds.copied)},
          {"reading", fmt::format("{:.1f} GB/s", 1e-9 * bounds.read)}};
}

}  // namespace nmt::app::bench
