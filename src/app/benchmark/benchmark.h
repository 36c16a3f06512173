#pragma once

#include "app/benchmark/benchmark_spec.h"

#include <cstdio>

namespace nmt::app::bench {

/// Runs the tables and writes rows to spec.out and `terminal` as they complete. Errors (usage): no
/// row matches the filter; (failed): rows with wrong results; as Compute.
void benchmark(const BenchmarkSpec& spec, std::FILE* terminal);

}  // namespace nmt::app::bench
