// nmt-translate: translates text with a trained model.

#include "app/program.h"
#include "app/translate/translate.h"
#include "config/settings.h"

int main(int argc, char** argv) {
  using namespace nmt;
  app::TranslateSpec spec;
  config::Settings settings(
      "nmt-translate", "[OPTIONS] [MODEL] [-- TEXT...]",
      "translates lines of text, from a file, standard input or the command line");
  settings.add(app::fields(spec)).positionals({"model"}).after_dashes("text");
  return app::run_tool(argc, argv, settings, [&] {
    app::check(spec);
    if (!app::dump_if_asked(settings)) app::translate(spec);
    return ExitStatus::ok;
  });
}
