// nmt-bleu: BLEU, chrF and ROUGE of detokenized text, with sacreBLEU's command line, figures and
// significance tests.

#include "app/bleu/bleu.h"
#include "app/program.h"
#include "core/log.h"

namespace {

constexpr const char* usage =
    "REF [REF...] -i HYP [HYP...]\n"
    "  or:  nmt-bleu REF < HYP\n\n"
    "  nmt-bleu ref.de -i mine.de -b -w 2                 only the BLEU score, two digits\n"
    "  nmt-bleu ref.de -i mine.de -m bleu chrf            BLEU and chrF with signatures\n"
    "  nmt-bleu ref.en -i mine.en -m rouge -f text        ROUGE-1, ROUGE-2 and ROUGE-L\n"
    "  nmt-bleu ref.de -i mine.de --confidence -f text    with a 95 % interval\n"
    "  nmt-bleu ref.de -i base.de mine.de --paired-bs     is mine better than base?";

}  // namespace

int main(int argc, char** argv) {
  using namespace nmt;
  app::BleuSpec spec;
  config::Settings settings(
      "nmt-bleu", usage,
      "computes BLEU, chrF and TER as sacreBLEU does, to the printed digit, and ROUGE");
  settings.add(app::fields(spec)).alias("version", "V").positionals({"references"});
  return app::run_tool(argc, argv, settings, [&] {
    if (app::dump_if_asked(settings)) return ExitStatus::ok;
    app::check(spec);
    if (spec.quiet) log::set_level(log::Level::error);
    app::print(app::bleu(spec));
    return ExitStatus::ok;
  });
}
