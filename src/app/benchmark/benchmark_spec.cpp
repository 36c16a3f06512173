#include "app/benchmark/benchmark_spec.h"

#include "config/fields.h"

#include <utility>

namespace nmt::app::bench {

std::vector<config::Option> fields(BenchmarkSpec& spec) {
  using config::Option;
  std::vector<Option> list{
      Option("filter", &spec.filter,
             "run the rows whose `table/row` matches this regular expression; a table's name alone "
             "is that table")
          .meta("REGEX"),
      Option("min-time", &spec.min_time,
             "measure every row for at least so many seconds a repetition")
          .range(0)
          .meta("SECONDS"),
      Option("repetitions", &spec.repetitions,
             "measure every row so often; the shortest, the median and the deviation are told")
          .range(1),
      Option("format", &spec.format,
             "of the report: a Markdown table, a line a row, or one JSON document")
          .one_of({"text", "csv", "json"}),
      Option("out", &spec.out,
             "write the report to this file; the text then goes to standard output too")
          .meta("FILE"),
      Option("quick", &spec.quick,
             "small shapes, each measured once: whether everything runs and is right, in seconds"),
      Option("list", &spec.list, "print the names of the rows, and measure nothing"),
  };
  std::vector<Option> compute = config::only({"cpu-threads", "device", "products", "precision"},
                                             config::fields(spec.compute, float32_compute()));
  config::named(compute, "precision").words = enum_words<Precision>();
  list.insert(list.end(), compute.begin(), compute.end());
  for (Option& option : list) option = std::move(option).never_dumped();
  return list;
}

}  // namespace nmt::app::bench
