// nmt-vocab: learns vocabularies and looks into them.
#include "app/program.h"
#include "core/error.h"
#include "core/log.h"
#include "data/corpus.h"
#include "nmt/vocabulary.h"
#include "search/line_writer.h"
#include "search/piece_text.h"
#include "text/lines.h"
#include "text/train_vocabulary.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace nmt {
namespace {

using config::Option;
using config::Settings;

constexpr const char* kOverview = R"(nmt-vocab: learns vocabularies and looks into them
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

ExitStatus train(const std::vector<std::string>& paths, const std::string& model,
                 const VocabularyTraining& training) {
  if (paths.empty())
    fail(ExitStatus::usage,
         "nmt-vocab train: no FILE to learn from; nmt-vocab train --help says more");
  if (model.empty())
    fail(ExitStatus::usage,
         "nmt-vocab train: --model OUT.spm is needed: where the vocabulary goes");
  const auto start = std::chrono::steady_clock::now();
  std::deque<TextFile> files;
  std::int64_t lines = 0;
  for (const std::string& path : paths) {
    lines += files.emplace_back(path).lines();
    files.back().notes().warn(path);
  }
  if (lines == 0)
    fail(ExitStatus::data, "{}: no text to learn a vocabulary from", fmt::join(paths, ", "));
  LineWriter writer(model);  // before the work, so that a wrong name is told at once
  std::string storage;
  const LineAt line = [&](std::int64_t i) {
    auto file = files.begin();
    for (; i >= file->lines(); ++file) i -= file->lines();
    return file->line(i, storage);
  };
  log::info("learning {} pieces from {} lines", training.size, std::min(lines, training.max_lines));
  const TrainedVocabulary trained =
      train_vocabulary(lines, line, training, fmt::format("{}", fmt::join(paths, ", ")));
  writer.write(trained.vocabulary.bytes());
  writer.commit();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  log::info("{}: {} pieces from {} lines in {:.1f} s{}", model, trained.vocabulary.size(),
            trained.lines_used, seconds.count(),
            trained.lines_too_long > 0
                ? fmt::format(", {} lines over {} bytes passed over", trained.lines_too_long,
                              training.max_line_bytes)
                : "");
  return ExitStatus::ok;
}

/// A piece's length in characters.
std::size_t characters(const std::string& piece) {
  return static_cast<std::size_t>(
      std::count_if(piece.begin(), piece.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// A few lines about a vocabulary.
std::string summary(const Vocabulary& vocabulary) {
  int single = 0, starting = 0;
  std::vector<std::string> pieces;
  for (std::int32_t id = 3; id < vocabulary.size(); ++id) {
    pieces.push_back(vocabulary.piece(id));
    single += characters(pieces.back()) == 1;
    starting += vocabulary.starts_word(id);
  }
  const std::size_t shown = std::min<std::size_t>(pieces.size(), 12);
  const std::string first = fmt::format(
      "{}", fmt::join(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(shown), " "));
  std::partial_sort(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(shown),
                    pieces.end(), [](const std::string& a, const std::string& b) {
                      return std::pair(characters(b), a) < std::pair(characters(a), b);
                    });
  const std::string longest = fmt::format(
      "{}", fmt::join(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(shown), " "));
  return fmt::format(
      "pieces             {} (0 {}, 1 {}, 2 {})\n"
      "single characters  {}\n"
      "begin a word       {} (those with \xe2\x96\x81, which stands for a space)\n"
      "most frequent      {}\n"
      "longest            {}\n",
      vocabulary.size(), vocabulary.piece(0), vocabulary.piece(1), vocabulary.piece(2), single,
      starting, first, longest);
}

/// The numbers of a line. Errors (data): something else, or no id of the vocabulary.
std::vector<std::int32_t> ids_of(const std::string& line, const Vocabulary& vocabulary,
                                 const LineReader& reader) {
  std::vector<std::int32_t> ids;
  const char* const end = line.data() + line.size();
  for (const char* at = line.data();;) {
    while (at < end && (*at == ' ' || *at == '\t')) ++at;
    if (at == end) return ids;
    std::int32_t id = -1;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || (next < end && *next != ' ' && *next != '\t') || id < 0 ||
        id >= vocabulary.size()) {
      fail(ExitStatus::data, "{}: line {}: \"{}\" is no id from 0 to {}", reader.name(),
           reader.lines(), std::string(at, std::find(at, std::min(end, at + 20), ' ')),
           vocabulary.size() - 1);
    }
    ids.push_back(id);
    at = next;
  }
}

struct Inspection {
  std::string model, input, output;
  bool pieces = false, encode = false, decode = false, ids = false;
};

ExitStatus inspect(const Inspection& asked) {
  if (asked.model.empty())
    fail(ExitStatus::usage,
         "nmt-vocab inspect: no MODEL.spm to look into; nmt-vocab inspect --help says more");
  if (asked.pieces + asked.encode + asked.decode > 1) {
    fail(ExitStatus::usage,
         "--pieces, --encode and --decode are three things to do: give one of them");
  }
  if (asked.ids && !asked.encode && !asked.decode)
    fail(ExitStatus::usage, "--ids says how --encode or --decode write pieces: give one of them");
  const Vocabulary vocabulary = Vocabulary::load(asked.model);
  LineWriter writer(asked.output);
  if (asked.encode || asked.decode) {
    const PieceText pieces(vocabulary);
    LineReader reader = LineReader::open(asked.input);
    for (std::string line; reader.next(line);) {
      if (asked.encode) {
        const std::vector<std::int32_t> ids = vocabulary.encode(line);
        writer.write(asked.ids ? fmt::format("{}", fmt::join(ids, " ")) : pieces.decode(ids));
      } else {
        writer.write(
            vocabulary.decode(asked.ids ? ids_of(line, vocabulary, reader) : pieces.encode(line)));
      }
      writer.write("\n");
      if (!reader.available()) writer.flush();  // whoever types waits for an answer
    }
    reader.notes().warn(reader.name());
  } else if (asked.pieces) {
    for (std::int32_t id = 0; id < vocabulary.size(); ++id)
      writer.write(fmt::format("{}\t{}\n", id, vocabulary.piece(id)));
  } else {
    writer.write(summary(vocabulary));
  }
  writer.commit();
  return ExitStatus::ok;
}

int run_train(int argc, char** argv) {
  std::vector<std::string> files;
  std::string model;
  VocabularyTraining training;
  std::int64_t max_bytes = static_cast<std::int64_t>(training.max_line_bytes);
  Settings settings("nmt-vocab train", "FILE... --model OUT.spm [OPTIONS]",
                    "learns a vocabulary from text files, one sentence a line");
  settings.add(config::in_group(
      "vocabulary",
      {Option("files", &files,
              "text to learn from; the files of both languages give a joint vocabulary")
           .meta("FILE..."),
       Option("model", &model, "where the vocabulary goes, a SentencePiece model")
           .alias({"m"})
           .meta("OUT.spm"),
       Option(
           "size", &training.size,
           "pieces; less where the text has no more, more where its characters alone need so many")
           .alias({"s", "vocab-size"})
           .range(4, 1000000),
       Option("max-lines", &training.max_lines,
              "learn from at most so many lines, taken at even distances")
           .range(1),
       Option("max-line-bytes", &max_bytes, "pass over longer lines").range(1, 1 << 20)}));
  settings.positionals({"files"});
  return app::run_tool(argc, argv, settings, [&] {
    if (app::dump_if_asked(settings)) return ExitStatus::ok;
    training.max_line_bytes = static_cast<std::size_t>(max_bytes);
    return train(files, model, training);
  });
}

int run_inspect(int argc, char** argv) {
  Inspection asked;
  Settings settings("nmt-vocab inspect", "MODEL.spm [OPTIONS]",
                    "shows a vocabulary, cuts text into its pieces and puts it together again");
  settings.add(config::in_group(
      "vocabulary",
      {Option("model", &asked.model, "the vocabulary").alias({"m"}).meta("MODEL.spm"),
       Option("pieces", &asked.pieces, "print every piece after its id"),
       Option("encode", &asked.encode, "cut lines of text into pieces"),
       Option("decode", &asked.decode, "put lines of pieces together to text"),
       Option("ids", &asked.ids, "with --encode and --decode: numbers instead of pieces"),
       Option("input", &asked.input, "where lines come from").alias({"i"}).meta("FILE"),
       Option("output", &asked.output, "where results go").alias({"o"}).meta("FILE")}));
  settings.positionals({"model"});
  return app::run_tool(argc, argv, settings, [&] {
    return app::dump_if_asked(settings) ? ExitStatus::ok : inspect(asked);
  });
}

}  // namespace
}  // namespace nmt

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "train") return nmt::run_train(argc - 1, argv + 1);
  if (command == "inspect") return nmt::run_inspect(argc - 1, argv + 1);
  return nmt::app::run_program([&] {
    if (command == "--help" || command == "-h") {
      nmt::app::print(nmt::kOverview);
    } else if (command == "--version") {
      nmt::app::print("nmt-vocab " NMT_VERSION "\n");
    } else {
      nmt::fail(nmt::ExitStatus::usage,
                "nmt-vocab{}: train or inspect must come first; nmt-vocab --help says more",
                command.empty() ? "" : " " + command);
    }
    return 0;
  });
}
