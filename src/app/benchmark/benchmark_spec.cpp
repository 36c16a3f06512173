#include "app/benchmark/benchmark_spec.h"

#include "config/fields.h"

#include <utility>

namespace nmt::app::bench {

std::vector<config::Option> fields(BenchmarkSpec& spec) {
  using config::Option;
  const config::IdleRule listed = [&spec] { return spec.list ? "list is on" : ""; };
  const config::IdleRule quick = [&spec] {
    return spec.list ? "list is on" : spec.quick ? "quick is on" : "";
  };
  std::vector<Option> list = config::in_group(
      "rows and reports",
      {
          Option("filter", &spec.filter,
                 "regular expression for `table/row`, or the name of a table")
              .unset_means("all")
              .meta("REGEX"),
          Option("min-time", &spec.min_time, "minimum seconds per repetition")
              .range(0)
              .meta("SECONDS")
              .idle_when(quick),
          Option("repetitions", &spec.repetitions,
                 "repetitions per row; shortest, median and deviation are reported")
              .range(1)
              .idle_when(listed),
          Option("format", &spec.format, "report format")
              .one_of({"text", "csv", "json"})
              .idle_when(listed),
          Option("out", &spec.out, "additional report file")
              .meta("FILE")
              .written()
              .idle_when(listed),
          Option("blas", &spec.blas, "CBLAS library to compare matrix products with, such as MKL")
              .unset_means("OpenBLAS, where it is installed")
              .meta("FILE"),
          Option("quick", &spec.quick, "smoke test: small shapes, each measured once"),
          Option("list", &spec.list, "print the names of all rows"),
      });
  std::vector<Option> compute = config::only({"cpu-threads", "device", "products", "precision"},
                                             config::fields(spec.compute, float32_compute()));
  config::named(compute, "precision").words = enum_words<Precision>();
  config::named(compute, "precision").help = "matmul input precision; int8: CPU; tf32: GPU";
  list.insert(list.end(), compute.begin(), compute.end());
  return list;
}

}  // namespace nmt::app::bench
