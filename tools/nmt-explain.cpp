// nmt-explain: attention, gates and memory of a model during translation, as an HTML page.

#include "app/explain/explain.h"
#include "app/program.h"
#include "config/settings.h"

int main(int argc, char** argv) {
  using namespace nmt;
  app::ExplainSpec spec;
  config::Settings settings(
      "nmt-explain", "[OPTIONS] [MODEL] [-- TEXT...]",
      "shows attention, gates and memory of a model during translation, as an HTML page");
  settings.add(app::fields(spec)).positionals({"model"}).after_dashes("text");
  return app::run_tool(argc, argv, settings, [&] {
    if (!app::dump_if_asked(settings)) app::explain(spec);
    return ExitStatus::ok;
  });
}
