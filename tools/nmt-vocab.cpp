// nmt-vocab: learns and inspects vocabularies.

#include "app/program.h"
#include "app/vocab/inspect.h"
#include "app/vocab/learn.h"
#include "config/settings.h"
#include "core/error.h"

#include <string>
#include <vector>

namespace {

using namespace nmt;

constexpr const char* overview = R"(nmt-vocab: learns and inspects vocabularies
Usage: nmt-vocab train FILE... --size 8000 --model OUT.spm
  or:  nmt-vocab inspect MODEL.spm [--pieces | --encode | --decode] [--ids] [-i FILE] [-o FILE]

A vocabulary is a SentencePiece model with byte-pair encoding: it splits words into pieces and joins pieces to words.
nmt-train learns a vocabulary if none is given. Use nmt-vocab to share one between models, or to inspect one:

  nmt-vocab train train.en train.de --size 8000 --model joint.spm    one vocabulary for both languages
  nmt-vocab inspect joint.spm                                        a summary
  nmt-vocab inspect joint.spm --pieces | less                        every piece with its id
  echo "Wir sehen uns." | nmt-vocab inspect joint.spm --encode        the pieces of a sentence
  nmt-train train.en train.de --vocabs joint.spm                     a training with it

nmt-vocab train --help and nmt-vocab inspect --help list all options.
)";

struct Learning {
  app::LearnVocabularySpec spec;
  config::Settings settings{"nmt-vocab train", "FILE... --model OUT.spm [OPTIONS]",
                            "learns a vocabulary from text files, one sentence per line"};
  Learning() { settings.add(app::fields(spec)).positionals({"files"}); }
};

struct Inspection {
  app::InspectVocabularySpec spec;
  config::Settings settings{"nmt-vocab inspect", "MODEL.spm [OPTIONS]",
                            "shows a vocabulary, splits text into pieces or joins pieces to text"};
  Inspection() { settings.add(app::fields(spec)).positionals({"model"}); }
};

template <class Job>
int run(int argc, char** argv, void (*call)(Job&)) {
  Job job;
  return app::run_tool(argc - 1, argv + 1, job.settings, [&] {
    if (!app::dump_if_asked(job.settings)) call(job);
    return ExitStatus::ok;
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::string command = arguments.empty() ? "" : arguments[0];
  const bool completes = config::asks_completion(arguments);
  if (command == "train" && !completes)
    return run<Learning>(argc, argv, [](auto& job) { app::learn_vocabulary(job.spec); });
  if (command == "inspect" && !completes)
    return run<Inspection>(argc, argv, [](auto& job) { app::inspect_vocabulary(job.spec); });
  return app::run_program([&] {
    const Learning learning;
    const Inspection inspection;
    if (completes)
      app::print(config::completion(arguments, {&learning.settings, &inspection.settings}));
    else if (command == "--help" || command == "-h")
      app::print(overview);
    else if (command == "--version")
      app::print("nmt-vocab " NMT_VERSION "\n");
    else
      fail(ExitStatus::usage, "nmt-vocab{}: expected train or inspect first; see nmt-vocab --help",
           command.empty() ? "" : " " + command);
    return 0;
  });
}
