// nmt-convert: a model directory with its weights in fewer bits, checked by translating.

#include "app/convert/convert.h"
#include "app/program.h"
#include "config/settings.h"

int main(int argc, char** argv) {
  using namespace nmt;
  app::ConvertSpec spec;
  config::Settings settings(
      "nmt-convert", "[OPTIONS] MODEL OUTPUT",
      "writes a model directory with the weights in fewer bits: smaller, and faster on the CPU. It "
      "translates some sentences with both and refuses where BLEU falls. What training resumes "
      "from stays behind");
  settings.add(app::fields(spec)).positionals({"model", "output"});
  return app::run_tool(argc, argv, settings, [&] {
    if (!app::dump_if_asked(settings)) app::convert(spec);
    return ExitStatus::ok;
  });
}
