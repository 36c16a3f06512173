#include "app/vocab/inspect.h"

#include "app/files/outputs.h"
#include "core/error.h"
#include "nmt/vocabulary.h"
#include "search/batch_translator.h"
#include "search/line_writer.h"
#include "search/piece_text.h"
#include "text/lines.h"
#include "text/utf8.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include <fmt/ranges.h>

namespace nmt::app {
namespace {

/// A summary of a vocabulary.
std::string summary(const Vocabulary& vocabulary) {
  int single = 0, starting = 0;
  std::vector<std::string> pieces;
  for (std::int32_t id = 3; id < vocabulary.size(); ++id) {
    pieces.push_back(vocabulary.piece(id));
    single += count_characters(pieces.back()) == 1;
    starting += vocabulary.starts_word(id);
  }
  const std::size_t shown = std::min<std::size_t>(pieces.size(), 12);
  const std::string first = fmt::format(
      "{}", fmt::join(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(shown), " "));
  std::partial_sort(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(shown),
                    pieces.end(), [](const std::string& a, const std::string& b) {
                      return std::pair(count_characters(b), a) < std::pair(count_characters(a), b);
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

/// Parses the ids of a line. Errors (data): not a number, or not an id of the vocabulary.
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
      fail(ExitStatus::data, "{}: line {}: '{}' is not an id from 0 to {}", reader.name(),
           reader.lines(), std::string(at, std::find(at, std::min(end, at + 20), ' ')),
           vocabulary.size() - 1);
    }
    ids.push_back(id);
    at = next;
  }
}

}  // namespace

std::vector<config::Option> fields(InspectVocabularySpec& spec) {
  using config::Option;
  return config::in_group(
      "vocabulary",
      {Option("model", &spec.model, "SentencePiece model").alias({"m"}).meta("MODEL.spm"),
       Option("pieces", &spec.pieces, "print every piece with its id"),
       Option("encode", &spec.encode, "split text into pieces"),
       Option("decode", &spec.decode, "join pieces to text"),
       Option("ids", &spec.ids, "ids instead of pieces with --encode and --decode"),
       Option("input", &spec.input, "input file")
           .unset_means("standard input")
           .alias({"i"})
           .meta("FILE")
           .idle_when([&spec] {
             return spec.encode || spec.decode ? "" : "neither encode nor decode is on";
           }),
       Option("output", &spec.output, "output file")
           .unset_means("standard output")
           .alias({"o"})
           .meta("FILE")
           .written()});
}

void inspect_vocabulary(const InspectVocabularySpec& spec) {
  if (spec.model.empty())
    fail(ExitStatus::usage,
         "nmt-vocab inspect: MODEL.spm is missing; see nmt-vocab inspect --help");
  if (spec.pieces + spec.encode + spec.decode > 1) {
    fail(ExitStatus::usage, "--pieces, --encode and --decode exclude each other");
  }
  if (spec.ids && !spec.encode && !spec.decode)
    fail(ExitStatus::usage, "--ids requires --encode or --decode");
  const Vocabulary vocabulary = Vocabulary::load(spec.model);
  check_outputs(
      {{spec.model, spec.encode || spec.decode ? or_standard_stream(spec.input) : ""}, {}},
      {{"output", or_standard_stream(spec.output)}});
  LineWriter writer(spec.output);
  if (spec.encode || spec.decode) {
    const PieceText pieces(vocabulary);
    LineReader reader = LineReader::open(spec.input);
    for (std::string line; reader.next(line);) {
      if (spec.encode) {
        const std::vector<std::int32_t> ids = vocabulary.encode(line);
        writer.write(spec.ids ? fmt::format("{}", fmt::join(ids, " ")) : pieces.decode(ids));
      } else {
        std::string text =
            vocabulary.decode(spec.ids ? ids_of(line, vocabulary, reader) : pieces.encode(line));
        keep_in_one_line(text);
        writer.write(text);
      }
      writer.write("\n");
      if (!reader.available()) writer.flush();  // an interactive user waits for the result
    }
    reader.notes().warn(reader.name());
  } else if (spec.pieces) {
    for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
      std::string piece = vocabulary.piece(id);
      keep_in_one_line(piece);
      writer.write(fmt::format("{}\t{}\n", id, piece));
    }
  } else {
    writer.write(summary(vocabulary));
  }
  writer.commit();
}

}  // namespace nmt::app
