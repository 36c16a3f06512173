// nmt-distill: trains a small, fast student on the translations of a teacher.

#include "app/distill/distill.h"
#include "app/program.h"
#include "config/settings.h"

namespace {

constexpr const char* usage =
    "SOURCE [REFERENCE] --teacher DIR... --output DIR --valid-sets SRC REF [OPTIONS]\n\n"
    "  translate   the teacher translates SOURCE; DIR/translate has its n-best lists\n"
    "  select      one translation per line, closest to REFERENCE; --backward scores it\n"
    "  filter      drops bad pairs: DIR/distilled.source, DIR/distilled.target\n"
    "  align       word links by the teacher's attention: DIR/distilled.links\n"
    "  train       nmt-train on these files: DIR/student\n"
    "  shortlist   target pieces of each source piece: DIR/shortlist.txt\n"
    "  convert     nmt-convert to int8: DIR/student-int8\n"
    "  check       BLEU and speed of teacher and student: DIR/table.txt\n\n"
    "The same command continues an interrupted run and skips finished steps.";

}  // namespace

int main(int argc, char** argv) {
  using namespace nmt;
  app::DistillSpec spec;
  config::Settings settings("nmt-distill", usage,
                            "trains a small, fast student on the translations of a teacher, "
                            "converts it to int8 and compares both");
  settings.add(app::fields(spec)).positionals({"train-sets"}).checks_effects_itself();
  return app::run_tool(argc, argv, settings, [&] {
    app::note_given(spec, settings);
    if (app::dump_if_asked(settings)) return ExitStatus::ok;
    return app::distill(spec, {argv, argv + argc});
  });
}
