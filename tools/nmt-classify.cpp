// nmt-classify: labels of texts, by a classifier that nmt-train --task classification has trained.

#include "app/classify/classify.h"
#include "app/program.h"
#include "config/settings.h"

namespace {

constexpr const char* usage =
    "[OPTIONS] MODEL\n\n"
    "  nmt-classify model < text > labels       one label per line of text\n"
    "  nmt-classify model --evaluate test.tsv   error rate with its interval";

}  // namespace

int main(int argc, char** argv) {
  using namespace nmt;
  app::ClassifySpec spec;
  config::Settings settings("nmt-classify", usage, "classifies each line of text");
  settings.add(app::fields(spec)).positionals({"model"});
  return app::run_tool(argc, argv, settings, [&] {
    if (app::dump_if_asked(settings)) return ExitStatus::ok;
    app::classify(spec);
    return ExitStatus::ok;
  });
}
