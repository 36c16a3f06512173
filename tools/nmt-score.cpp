// nmt-score: log probabilities of given translations, or of a text by a language model.

#include "app/program.h"
#include "app/score/score.h"
#include "config/settings.h"

int main(int argc, char** argv) {
  using namespace nmt;
  app::ScoreSpec spec;
  config::Settings settings("nmt-score", "[OPTIONS] [MODEL] [SOURCE TARGET | TEXT]",
                            "prints the log probability of each target given its source, or of "
                            "each line of a text by a language model");
  settings.add(app::fields(spec)).positionals({"model", "train-sets"});
  return app::run_tool(argc, argv, settings, [&] {
    app::check(spec);
    if (app::dump_if_asked(settings)) return ExitStatus::ok;
    app::separate_files(spec);
    app::score(spec);
    return ExitStatus::ok;
  });
}
