#include "app/tag/tag.h"

#include "app/common_options.h"
#include "app/compute/compute.h"
#include "app/files/line_input.h"
#include "app/files/outputs.h"
#include "config/fields.h"
#include "core/error.h"
#include "core/log.h"
#include "core/number_text.h"
#include "search/line_writer.h"
#include "tasks/tagging/loaded_tagger.h"
#include "tasks/tagging/tagged_corpus.h"
#include "tasks/tagging/tagging_score.h"
#include "tasks/unknown_labels.h"

#include <algorithm>
#include <chrono>

namespace nmt::app {
namespace {

using config::Option;
using Words = std::vector<std::string>;

constexpr std::size_t window = 1000;  // lines tagged at a time

Words words_of(const std::string& line) {
  constexpr const char* white_space = " \t\r\v\f";
  Words words;
  for (std::size_t at = 0; (at = line.find_first_not_of(white_space, at)) != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(white_space, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

void tag_lines(const TagSpec& spec, LoadedTagger& loaded, LineWriter& writer) {
  LineInput input(spec.input, {});
  std::int64_t words = 0;
  const auto start = std::chrono::steady_clock::now();
  std::vector<Words> sentences;
  const auto write = [&] {
    for (const std::string& line : label_lines(loaded.tag(sentences), loaded.tags()))
      writer.write(line + "\n");
    sentences.clear();
    if (!input.is_file()) writer.flush();
  };
  for (std::string line; input.next(line);) {
    sentences.push_back(words_of(line));
    words += std::ssize(sentences.back());
    if (sentences.size() == window || !input.ready()) write();
  }
  write();
  input.warn();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  log::info("{}, {} in {:.2f} s: {:.0f} words/s", counted(input.lines(), "line"),
            counted(words, "word"), seconds, static_cast<double>(words) / std::max(seconds, 1e-9));
}

void score_file(const TagSpec& spec, LoadedTagger& loaded, LineWriter& writer) {
  const TaggingSpec& tagging = loaded.spec().tagging;
  const ColumnFile file = read_columns(spec.evaluate, {tagging.word_column, tagging.tag_column});
  std::vector<Words> sentences;
  for (const TaggedSentence& sentence : file.sentences) sentences.push_back(sentence.words);
  const std::vector<std::string> lines = label_lines(loaded.tag(sentences), loaded.tags()),
                                 references = label_lines(file.sentences);
  warn_of_unknown_labels(spec.evaluate, loaded.tags(), references, "word");
  writer.write(tagging_score(loaded.tags(), lines, references).text() + "\n");
}

}  // namespace

std::vector<Option> fields(TagSpec& spec) {
  return joined(
      {config::in_group("files",
                        {model_option(&spec.model, "model directory of a tagger"),
                         Option("input", &spec.input, "text, one sentence per line")
                             .unset_means("standard input")
                             .alias({"i"})
                             .meta("FILE"),
                         output_option(&spec.output, "tags"),
                         Option("evaluate", &spec.evaluate, "file of columns: its tags are scored")
                             .unset_means("no evaluation")
                             .meta("FILE")}),
       config::only({"device", "cpu-threads"}, config::decoding_fields(spec.compute))});
}

void check(const TagSpec& spec) {
  if (spec.model.empty())
    fail(ExitStatus::usage, "model: no directory given; usage: nmt-tag MODEL");
  if (!spec.input.empty() && !spec.evaluate.empty())
    fail(ExitStatus::usage, "--input and --evaluate exclude each other");
}

void tag(const TagSpec& spec) {
  check(spec);
  check_outputs(
      {{spec.evaluate.empty() ? or_standard_stream(spec.input) : spec.evaluate}, {spec.model}},
      {{"output", or_standard_stream(spec.output)}});
  LineWriter writer(spec.output);
  Compute compute(spec.compute);
  log::info("{}", compute.describe("nmt-tag"));
  const auto arena = compute.new_arena();
  LoadedTagger loaded(spec.model, compute.context(*arena));
  if (spec.evaluate.empty())
    tag_lines(spec, loaded, writer);
  else
    score_file(spec, loaded, writer);
  writer.commit();
}

}  // namespace nmt::app
