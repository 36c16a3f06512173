#include "app/tag/tag.h"

#include "app/files/line_input.h"
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

std::vector<config::Option> fields(TagSpec& spec) {
  return fields(spec, {.model = "model directory of a tagger",
                       .input = "text, one sentence per line",
                       .output = "tags",
                       .evaluate = "file of columns: its tags are scored"});
}

void tag(const TagSpec& spec) {
  Labeling run(spec, "nmt-tag");
  LoadedTagger loaded(spec.model, run.context());
  if (spec.evaluate.empty())
    tag_lines(spec, loaded, run.writer());
  else
    score_file(spec, loaded, run.writer());
  run.writer().commit();
}

}  // namespace nmt::app
