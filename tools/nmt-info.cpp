// nmt-info MODEL_DIR, or nmt-info --config FILE...: size, cost and memory of a model, trained or
// not.

#include "app/info/info.h"
#include "app/program.h"
#include "config/settings.h"

int main(int argc, char** argv) {
  using namespace nmt;
  app::InfoSpec spec;
  config::Settings settings("nmt-info", "[OPTIONS] [MODEL]",
                            "prints the size, cost and memory of a model: of a directory, or as "
                            "nmt-train would create it");
  settings.add(app::fields(spec)).positionals({"model"}).checks_effects_itself();
  return app::run_tool(argc, argv, settings, [&] {
    app::note_given(spec, settings);
    if (spec.architectures) {
      app::refuse_settings_of_models(settings);
      if (!app::dump_if_asked(settings)) app::print(app::architectures(spec));
      return ExitStatus::ok;
    }
    const app::ModelInfo model = app::find_model(spec);
    app::prepare_dump(spec, settings);
    if (!app::dump_if_asked(settings)) app::print(app::info(spec, model));
    return ExitStatus::ok;
  });
}
