// nmt-vocab: learns vocabularies and looks into them.

#include "app/program.h"
#include "app/vocabulary/inspect.h"
#include "app/vocabulary/learn.h"
#include "config/settings.h"
#include "core/error.h"

#include <string>

namespace {

using namespace nmt;

constexpr const char* overview = R"(nmt-vocab: learns vocabularies and looks into them
Usage: nmt-vocab train FILE... --size 8000 --model OUT.spm
       nmt-vocab inspect MODEL.spm [--pieces | --encode | --decode] [--ids] [-i FILE] [-o FILE]

A vocabulary is a SentencePiece model: byte-pair encoding, which cuts words into pieces so that a few thousand of them
write every word, and puts them together again. nmt-train learns one by itself when none is given; learn one here to
share it between models, or to see what it does:

  nmt-vocab train train.en train.de --size 8000 --model joint.spm    one for both languages
  nmt-vocab inspect joint.spm                                        what is in it
  nmt-vocab inspect joint.spm --pieces | less                        every piece with its id
  echo "Wir sehen uns am Dienstag." | nmt-vocab inspect joint.spm --encode
  nmt-train train.en train.de --vocabs joint.spm                     train with it

nmt-vocab train --help and nmt-vocab inspect --help list all options.
)";

int learn(int argc, char** argv) {
  app::LearnVocabularySpec spec;
  config::Settings settings("nmt-vocab train", "FILE... --model OUT.spm [OPTIONS]",
                            "learns a vocabulary from text files, one sentence a line");
  settings.add(app::fields(spec)).positionals({"files"});
  return app::run_tool(argc, argv, settings, [&] {
    if (!app::dump_if_asked(settings)) app::learn_vocabulary(spec);
    return ExitStatus::ok;
  });
}

int inspect(int argc, char** argv) {
  app::InspectVocabularySpec spec;
  config::Settings settings(
      "nmt-vocab inspect", "MODEL.spm [OPTIONS]",
      "shows a vocabulary, cuts text into its pieces and puts it together again");
  settings.add(app::fields(spec)).positionals({"model"});
  return app::run_tool(argc, argv, settings, [&] {
    if (!app::dump_if_asked(settings)) app::inspect_vocabulary(spec);
    return ExitStatus::ok;
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "train") return learn(argc - 1, argv + 1);
  if (command == "inspect") return inspect(argc - 1, argv + 1);
  return app::run_program([&] {
    if (command == "--help" || command == "-h")
      app::print(overview);
    else if (command == "--version")
      app::print("nmt-vocab " NMT_VERSION "\n");
    else
      fail(ExitStatus::usage,
           "nmt-vocab{}: train or inspect must come first; nmt-vocab --help says more",
           command.empty() ? "" : " " + command);
    return 0;
  });
}
