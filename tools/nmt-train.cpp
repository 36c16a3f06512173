// nmt-train SOURCE TARGET: trains a translation model on two parallel files, or a model of another
// task on one.

#include "app/program.h"
#include "app/train/train.h"
#include "config/settings.h"

#include <csignal>

int main(int argc, char** argv) {
  using namespace nmt;
  app::TrainingControl control;
  control.command = {argv, argv + argc};
  control.catch_signals = true;
  app::Processes processes = app::Processes::of_environment();
  app::TrainingSpec spec;
  config::Settings settings("nmt-train", "[OPTIONS] SOURCE [TARGET]",
                            "trains a translation model on two files whose lines are translations "
                            "of each other, or with --task another model on one file; the same "
                            "command resumes an interrupted training");
  settings.add(app::fields(spec)).positionals({"train-sets"}).checks_effects_itself();
  const auto train = [&] {
    // A program that reads the log may exit while text is read and the vocabulary is learned.
    // During the training, train::Signals ignores SIGPIPE.
    if (settings.asks_dump().empty()) std::signal(SIGPIPE, SIG_IGN);
    app::note_given(spec, settings);
    app::PreparedTraining prepared(spec, processes);
    if (!settings.asks_dump().empty()) spec.spread.clear();  // a dump has no shorthands
    if (app::dump_if_asked(settings.leave_out(prepared.task->idle_options())))
      return ExitStatus::ok;
    return app::train(prepared, control).status;
  };
  const int status = app::run_tool(argc, argv, settings, train, [&] { processes.on_error(); });
  return processes.end(status);
}
