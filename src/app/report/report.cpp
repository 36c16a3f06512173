#include "app/report/report.h"

#include "app/common_options.h"
#include "app/files/outputs.h"
#include "app/page.h"
#include "app/report/training_history.h"
#include "core/error.h"
#include "core/nlohmann.h"

namespace nmt::app {

std::vector<config::Option> fields(ReportSpec& spec) {
  using config::Option;
  return config::in_group(
      "files",
      {model_option(&spec.model, "directory of a translation or language model"),
       output_option(&spec.output, "the HTML page"),
       Option("json", &spec.json, "JSON file for the numbers of the page").meta("FILE").written(),
       Option("worst", &spec.worst, "worst development sentences to show").range(0, 100000)});
}

void report(const ReportSpec& spec) {
  if (spec.model.empty())
    fail(ExitStatus::usage, "no model directory given; usage: nmt-report DIR");
  if (is_standard_output(or_standard_stream(spec.output)) && is_standard_output(spec.json))
    fail(ExitStatus::usage,
         "output (the page) and json are both standard output; name a file for one of them");
  check_outputs({{}, {spec.model}},
                {{"output", or_standard_stream(spec.output)}, {"json", spec.json}});
  PageOutput output(spec.output, spec.json);
  const nlohmann::ordered_json data = training_report(spec.model, spec.worst);
  output.write(make_page("report.html", data), data);
}

}  // namespace nmt::app
