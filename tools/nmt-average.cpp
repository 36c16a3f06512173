// nmt-average: averages checkpoints of one training.

#include "app/average/average.h"
#include "app/program.h"
#include "config/settings.h"

int main(int argc, char** argv) {
  using namespace nmt;
  app::AverageSpec spec;
  config::Settings settings("nmt-average", "[OPTIONS] MODEL OUTPUT",
                            "averages checkpoints of one training into a new model directory");
  settings.add(app::fields(spec)).positionals({"model", "output"});
  return app::run_tool(argc, argv, settings, [&] {
    if (!app::dump_if_asked(settings)) app::average(spec);
    return ExitStatus::ok;
  });
}
