#pragma once

#include "app/benchmark/benchmark_spec.h"

#include <cstdio>

namespace nmt::app::bench {

/// Runs the tables and writes the report as rows come: to spec.out, and to `terminal`. Errors
/// (usage): no row matches the filter; (failed): rows whose results were wrong; as Compute.
void benchmark(const BenchmarkSpec& spec, std::FILE* terminal);

}  // namespace nmt::app::bench
