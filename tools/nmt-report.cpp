// nmt-report DIR: a training run as one HTML page.

#include "app/common_options.h"
#include "app/page.h"
#include "app/program.h"
#include "app/report/training_history.h"

#include <nlohmann/json.hpp>

int main(int argc, char** argv) {
  using nmt::config::Option;
  std::string model, output, json;
  int worst = 20;
  nmt::config::Settings settings("nmt-report", "[OPTIONS] DIR",
                                 "shows the training of a model directory as one HTML page");
  settings
      .add(nmt::config::in_group(
          "files", {Option("model", &model, "the model directory").alias({"m"}).meta("DIR"),
                    nmt::app::output_option(&output, "the page goes"),
                    Option("json", &json, "writes the page's numbers there too").meta("FILE"),
                    Option("worst", &worst, "how many of the worst development sentences to show")
                        .range(0, 100000)}))
      .positionals({"model"});
  return nmt::app::run_tool(argc, argv, settings, [&] {
    if (nmt::app::dump_if_asked(settings)) return nmt::ExitStatus::ok;
    if (model.empty())
      nmt::fail(nmt::ExitStatus::usage, "no model directory: say which with nmt-report DIR");
    nmt::app::PageOutput out(output, json);
    const nlohmann::ordered_json report = nmt::app::training_report(model, worst);
    out.write(nmt::app::make_page("report.html", report), report);
    return nmt::ExitStatus::ok;
  });
}
