// nmt-report DIR: a training run as one HTML page.

#include <nlohmann/json.hpp>

#include "tools/page.h"
#include "tools/program.h"
#include "tools/training_history.h"

int main(int argc, char** argv) {
  using nmt::config::Option;
  std::string model, output, json;
  int worst = 20;
  nmt::config::Settings settings("nmt-report", "[OPTIONS] DIR", "shows the training of a model directory as one HTML page");
  settings
      .add(nmt::config::in_group(
          "files", {Option("model", &model, "the model directory").alias({"m"}).meta("DIR"),
                    nmt::tools::output_option(&output, "the page goes"),
                    Option("json", &json, "writes the page's numbers there too").meta("FILE"),
                    Option("worst", &worst, "how many of the worst development sentences to show").range(0, 100000)}))
      .positionals({"model"});
  return nmt::tools::run_tool(argc, argv, settings, [&] {
    if (nmt::tools::dump_if_asked(settings)) return nmt::ExitStatus::ok;
    if (model.empty()) nmt::fail(nmt::ExitStatus::usage, "no model directory: say which with nmt-report DIR");
    nmt::tools::PageOutput out(output, json);
    const nlohmann::ordered_json report = nmt::tools::training_report(model, worst);
    out.write(nmt::tools::make_page("report.html", report), report);
    return nmt::ExitStatus::ok;
  });
}
