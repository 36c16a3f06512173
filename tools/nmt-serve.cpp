// nmt-serve: translations over HTTP, as LibreTranslate offers them.

#include "app/program.h"
#include "config/settings.h"
#include "http/serve.h"

int main(int argc, char** argv) {
  using namespace nmt;
  http::ServeSpec spec;
  config::Settings settings("nmt-serve", "[OPTIONS] EN-DE=MODEL...",
                            "serves translations over HTTP with the API of LibreTranslate");
  settings.add(http::fields(spec)).positionals({"models"});
  return app::run_tool(argc, argv, settings, [&] {
    if (!app::dump_if_asked(settings)) http::serve(spec);
    return ExitStatus::ok;
  });
}
