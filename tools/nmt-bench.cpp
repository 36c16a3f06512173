// nmt-bench: benchmarks kernels, layers, training and decoding against the machine's peak
// performance.

#include "app/benchmark/benchmark.h"
#include "app/program.h"
#include "config/settings.h"

#include <cstdio>

int main(int argc, char** argv) {
  using namespace nmt;
  app::bench::BenchmarkSpec spec;
  config::Settings settings(
      "nmt-bench", "[OPTIONS] [FILTER [THREADS]]",
      "benchmarks kernels, layers, training and decoding against the machine's peak performance");
  settings.add(app::bench::fields(spec)).positionals({"filter", "cpu-threads"});
  return app::run_tool(argc, argv, settings, [&] {
    if (!app::dump_if_asked(settings)) app::bench::benchmark(spec, stdout);
    return ExitStatus::ok;
  });
}
