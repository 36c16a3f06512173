// nmt-average: several checkpoints of one training as one model.

#include "app/average/average.h"
#include "app/program.h"
#include "config/settings.h"

int main(int argc, char** argv) {
  using namespace nmt;
  app::AverageSpec spec;
  config::Settings settings(
      "nmt-average", "[OPTIONS] MODEL OUTPUT",
      "averages checkpoints of one training into a new model directory, which often translates "
      "better than each. "
      "Checkpoints too far apart, or from before the learning rate fell, harm; a training with "
      "--exponential-smoothing has an average already. nmt-train keeps --keep-last checkpoints");
  settings.add(app::fields(spec)).positionals({"model", "output"});
  return app::run_tool(argc, argv, settings, [&] {
    if (!app::dump_if_asked(settings)) app::average(spec);
    return ExitStatus::ok;
  });
}
