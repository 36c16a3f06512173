// nmt-convert: converts the weights of a model to lower precision and checks the translations.

#include "app/convert/convert.h"
#include "app/program.h"
#include "config/settings.h"

int main(int argc, char** argv) {
  using namespace nmt;
  app::ConvertSpec spec;
  config::Settings settings(
      "nmt-convert", "[OPTIONS] MODEL OUTPUT",
      "stores a translation or language model in lower precision, checked by BLEU or perplexity");
  settings.add(app::fields(spec)).positionals({"model", "output"});
  return app::run_tool(argc, argv, settings, [&] {
    if (!app::dump_if_asked(settings)) app::convert(spec);
    return ExitStatus::ok;
  });
}
