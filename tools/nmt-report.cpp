// nmt-report DIR: a training run as one HTML page.

#include "app/program.h"
#include "app/report/report.h"
#include "config/settings.h"

int main(int argc, char** argv) {
  using namespace nmt;
  app::ReportSpec spec;
  config::Settings settings(
      "nmt-report", "[OPTIONS] DIR",
      "shows the training of a translation or language model as one HTML page");
  settings.add(app::fields(spec)).positionals({"model"});
  return app::run_tool(argc, argv, settings, [&] {
    if (!app::dump_if_asked(settings)) app::report(spec);
    return ExitStatus::ok;
  });
}
