// nmt-bleu: BLEU and chrF of detokenized text, with sacreBLEU's command line, figures and
// significance tests.

#include "app/bleu/bleu.h"
#include "app/program.h"
#include "core/log.h"

#include <csignal>

int main(int argc, char** argv) {
  using namespace nmt;
  std::signal(SIGPIPE, SIG_DFL);
  return app::run_program([&] {
    app::BleuSpec spec;
    if (!app::parse_bleu_command({argv + 1, argv + argc}, spec)) return 0;
    if (spec.quiet) log::set_level(log::Level::error);
    app::print(app::bleu(spec));
    return 0;
  });
}
