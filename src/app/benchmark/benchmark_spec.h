#pragma once

#include "config/compute_spec.h"
#include "config/option.h"

#include <string>
#include <vector>

namespace nmt::app::bench {

/// What to measure, how, and how to report it.
struct BenchmarkSpec {
  std::string filter;     ///< regular expression over `table/row`, or a table's name; "": all
  double min_time = 0.2;  ///< seconds that a repetition takes at least
  int repetitions = 1;
  std::string format = "text";  ///< text | csv | json
  std::string out;              ///< a file for the report; "": none
  bool quick = false;           ///< small shapes, each measured once
  bool list = false;            ///< write the names of the rows and measure nothing
  ComputeSpec compute = float32_compute();
};

/// The options of nmt-bench.
std::vector<config::Option> fields(BenchmarkSpec& spec);

}  // namespace nmt::app::bench
