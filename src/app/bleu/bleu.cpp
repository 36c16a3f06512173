#include "app/bleu/bleu.h"

#include "app/bleu/bleu_report.h"
#include "app/files/line_input.h"
#include "core/error.h"
#include "core/log.h"
#include "core/number_text.h"
#include "eval/tokenize.h"
#include "text/lines.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <unistd.h>

namespace nmt::app {
namespace {

using Lines = std::vector<std::string>;

Lines read_lines(const std::string& path) {
  LineReader reader = LineReader::open(path);
  Lines lines;
  for (std::string line; reader.next(line);) lines.emplace_back(without_trailing_space(line));
  if (lines.empty()) fail(ExitStatus::data, "{}: has no lines to score", reader.name());
  if (std::all_of(lines.begin(), lines.end(), is_blank))
    log::warn("{}: no line has text, so nothing can match", reader.name());
  reader.notes().warn(reader.name());
  return lines;
}

// One file per reference stream, or one file with tab-separated streams.
std::vector<Lines> read_references(const BleuSpec& spec) {
  std::vector<Lines> streams;
  for (const std::string& path : spec.references) streams.push_back(read_lines(path));
  if (spec.reference_fields == 1) return streams;
  const Lines lines = std::move(streams[0]);
  streams.assign(static_cast<std::size_t>(spec.reference_fields), {});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::size_t begin = 0;
    for (std::size_t k = 0; k < streams.size(); ++k) {
      const bool last = k + 1 == streams.size();  // the last field keeps further tabs
      const std::size_t end = last ? lines[i].size() : lines[i].find('\t', begin);
      if (end == std::string::npos)
        fail(ExitStatus::data, "{}: line {} has {}, expected {} (trailing tabs do not count)",
             spec.references[0], i + 1, counted(static_cast<std::int64_t>(k) + 1, "field"),
             streams.size());
      streams[k].push_back(lines[i].substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return streams;
}

void warn_if_tokenized(const System& system, const BleuSpec& spec) {
  if (spec.force || spec.bleu.tokenizer == BleuTokenizer::multi_bleu ||
      std::find(spec.metrics.begin(), spec.metrics.end(), "bleu") == spec.metrics.end())
    return;
  std::size_t tokenized = 0;
  for (const std::string& line : system.lines) tokenized += line.ends_with(" .");
  if (tokenized >= 100)
    log::warn(
        "{}: {} lines end in a tokenized full stop (' .'); BLEU is for detokenized text (--force: "
        "no warning)",
        system.name, tokenized);
}

std::vector<std::string> hypothesis_paths(const BleuSpec& spec) {
  return spec.inputs.empty() ? std::vector<std::string>{"-"} : spec.inputs;
}

void expect_one_standard_input(const BleuSpec& spec) {
  std::vector<std::string> files = spec.references;
  const std::vector<std::string> hypotheses = hypothesis_paths(spec);
  files.insert(files.end(), hypotheses.begin(), hypotheses.end());
  app::expect_one_standard_input(files);
}

std::vector<System> read_systems(const BleuSpec& spec, const std::vector<Lines>& references) {
  std::vector<System> systems;
  const std::vector<std::string> paths = hypothesis_paths(spec);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      if (paths[i] == paths[j]) fail(ExitStatus::usage, "--input: {} is given twice", paths[i]);
    if (paths[i] == "-" && isatty(STDIN_FILENO))
      log::info("reading hypotheses from standard input");
    systems.push_back({paths[i] == "-" ? "standard input" : paths[i], read_lines(paths[i])});
    for (std::size_t k = 0; k < references.size(); ++k)
      if (references[k].size() != systems.back().lines.size())
        fail(ExitStatus::data, "{} has {}, the reference {} has {}", systems.back().name,
             counted(std::ssize(systems.back().lines), "line"),
             spec.references[std::min(k, spec.references.size() - 1)],
             grouped(std::ssize(references[k])));
    warn_if_tokenized(systems.back(), spec);
  }
  return systems;
}

}  // namespace

std::string bleu(const BleuSpec& spec) {
  expect_one_standard_input(spec);
  const std::vector<Lines> references = read_references(spec);
  const std::vector<System> systems = read_systems(spec, references);
  return report(spec, systems, references);
}

}  // namespace nmt::app
