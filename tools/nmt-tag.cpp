// nmt-tag: tags of words, by a tagger that nmt-train --task tagging has trained.

#include "app/program.h"
#include "app/tag/tag.h"
#include "config/settings.h"

namespace {

constexpr const char* usage =
    "[OPTIONS] MODEL\n\n"
    "  nmt-tag model < text > tags              one line of tags per line of text\n"
    "  nmt-tag model --evaluate test.conllu     accuracy or span F1 with its interval";

}  // namespace

int main(int argc, char** argv) {
  using namespace nmt;
  app::TagSpec spec;
  config::Settings settings("nmt-tag", usage, "tags the words of each line of text");
  settings.add(app::fields(spec)).positionals({"model"});
  return app::run_tool(argc, argv, settings, [&] {
    if (app::dump_if_asked(settings)) return ExitStatus::ok;
    app::tag(spec);
    return ExitStatus::ok;
  });
}
