#include "app/vocab/learn.h"

#include "core/error.h"
#include "core/log.h"
#include "data/corpus.h"
#include "search/line_writer.h"
#include "text/lines.h"
#include "text/vocabulary/train_vocabulary.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>

#include <fmt/ranges.h>

namespace nmt::app {
namespace {

// A vocabulary may be replaced; the training text, given in its place by mistake, may not.
void refuse_other_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return;
  if (std::filesystem::file_size(path, error) == 0) return;
  try {
    Vocabulary::load(path);
  } catch (const Error&) {
    fail(ExitStatus::usage, "model: {} exists and is no vocabulary; name another file", path);
  }
}

}  // namespace

std::vector<config::Option> fields(LearnVocabularySpec& spec) {
  using config::Option;
  return config::in_group(
      "vocabulary",
      {Option("files", &spec.files,
              "training text; files of both languages give a joint vocabulary")
           .meta("FILE..."),
       Option("model", &spec.model, "SentencePiece model to write").alias({"m"}).meta("OUT.spm"),
       Option("size", &spec.training.size,
              "vocabulary size; less if the text has fewer pieces, more if its characters need it")
           .alias({"s", "vocab-size"})
           .range(4, 1000000),
       Option("max-lines", &spec.training.max_lines, "evenly spaced lines to train on").range(1),
       Option("max-line-bytes", &spec.training.max_line_bytes,
              "line length limit in bytes; longer lines are skipped")
           .range(1, max_vocabulary_line_bytes)});
}

int learn_vocabulary(const LearnVocabularySpec& spec) {
  if (spec.files.empty())
    fail(ExitStatus::usage, "nmt-vocab train: no text file given; see nmt-vocab train --help");
  if (spec.model.empty())
    fail(ExitStatus::usage, "nmt-vocab train: no output given; name it with --model OUT.spm");
  refuse_other_file(spec.model);
  const auto start = std::chrono::steady_clock::now();
  std::deque<TextFile> files;
  std::int64_t lines = 0;
  for (const std::string& path : spec.files) {
    lines += files.emplace_back(path).lines();
    files.back().notes().warn(path);
  }
  if (lines == 0)
    fail(ExitStatus::data, "{}: no text to learn a vocabulary from", fmt::join(spec.files, ", "));
  LineWriter writer(spec.model);  // opened first, to report an invalid name immediately
  std::string storage;
  const LineAt line = [&](std::int64_t i) {
    auto file = files.begin();
    for (; i >= file->lines(); ++file) i -= file->lines();
    return file->line(i, storage);
  };
  log::info("learning {} pieces from {} lines", spec.training.size,
            std::min(lines, spec.training.max_lines));
  const TrainedVocabulary trained =
      train_vocabulary(lines, line, spec.training, fmt::format("{}", fmt::join(spec.files, ", ")));
  writer.write(trained.vocabulary.bytes());
  writer.commit();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  log::info("{}: {} pieces from {} lines in {:.1f} s{}", spec.model, trained.vocabulary.size(),
            trained.lines_used, seconds.count(),
            trained.lines_too_long > 0
                ? fmt::format(", {} lines over {} bytes skipped", trained.lines_too_long,
                              spec.training.max_line_bytes)
                : "");
  return trained.vocabulary.size();
}

}  // namespace nmt::app
