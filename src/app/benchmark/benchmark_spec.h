#pragma once

#include "config/compute_spec.h"
#include "config/option.h"

#include <string>
#include <vector>

namespace nmt::app::bench {

/// Specification of nmt-bench.
struct BenchmarkSpec {
  std::string filter;     ///< regular expression over `table/row`, or a table's name; "": all
  double min_time = 0.2;  ///< minimum seconds per repetition
  int repetitions = 1;
  std::string format = "text";  ///< text | csv | json
  std::string out;              ///< a file for the report; "": none
  std::string blas;             ///< CBLAS library to compare products with; "": OpenBLAS
  bool quick = false;           ///< small shapes, each measured once
  bool list = false;            ///< print the names of the rows without measuring
  ComputeSpec compute = float32_compute();
};

/// The options of nmt-bench.
std::vector<config::Option> fields(BenchmarkSpec& spec);

}  // namespace nmt::app::bench
