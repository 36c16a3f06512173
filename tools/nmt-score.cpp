// nmt-score: what a trained model thinks of given pairs.

#include "app/ensemble.h"
#include "app/program.h"
#include "app/progress.h"
#include "config/fields.h"
#include "config/settings.h"
#include "core/log.h"
#include "search/pair_scorer.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace nmt::app {
namespace {

struct Request {
  EnsembleRequest models;
  std::string output, summary;
  std::vector<std::string> pair;  // source and target file
  ScoreOutput format;
  bool pieces_in = false;
};

/// -m A B SOURCE TARGET: what is no folder behind the models is what to score.
void part_files(Request& request) {
  std::vector<std::string>& models = request.models.models;
  std::size_t first = models.empty() ? 0 : 1;
  while (first < models.size() &&
         (std::filesystem::is_directory(models[first]) || !request.pair.empty()))
    ++first;
  request.pair.insert(request.pair.end(), models.begin() + static_cast<std::ptrdiff_t>(first),
                      models.end());
  models.resize(first);
}

void score(const Request& request, const SearchSpec& spec) {
  if (request.pair.size() != 2)
    fail(ExitStatus::usage, "{} files to score, a source and a target are needed",
         request.pair.size());
  LineReader source_reader = LineReader::open(request.pair[0]),
             target_reader = LineReader::open(request.pair[1]);
  LineWriter writer(request.output);
  Inference inference("nmt-score", request.models, spec, request.pieces_in);
  LoadedEnsemble& models = inference.models;
  const Cpu cpu = inference.compute.cpu();
  ReaderLines sources(source_reader), targets(target_reader);
  ProgressLine progress(request.pair[1]);
  std::int64_t done = 0;
  const PairScorerOptions options{cpu,
                                  search_options(spec, cpu).ranking,
                                  translator_options(spec, cpu).batching,
                                  alignment_of(spec.alignment),
                                  request.pieces_in,
                                  [&](std::int64_t pairs) {
                                    done += pairs;
                                    progress.show(targets.lines(), targets.bytes(), done);
                                  }};
  PairScorer scorer(models.scorer(), models.source_vocabulary(), models.target_vocabulary(),
                    options);
  score_stream(scorer, sources, source_reader.name(), targets, target_reader.name(), writer,
               request.format);
  writer.commit();
  source_reader.notes().warn(source_reader.name());
  target_reader.notes().warn(target_reader.name());
  if (scorer.totals().cropped > 1)
    log::warn("{} sides of pairs were longer than {} tokens and cropped (--max-length)",
              scorer.totals().cropped, spec.max_length);
}

/// The part of the search's settings that scoring has.
std::vector<config::Option> scoring_fields(SearchSpec& spec) {
  spec.length_penalty = 0;  // plain log probabilities, if nothing else is asked for
  std::vector<config::Option> chosen;
  const std::vector<std::string> names{
      "normalize", "length-penalty", "coverage-penalty", "max-length",  "mini-batch",
      "alignment", "maxi-batch",     "maxi-batch-sort",  "cpu-threads", "device",
      "precision", "recurrences",    "cuda-graphs"};
  for (config::Option& option : config::fields(spec)) {
    if (std::find(names.begin(), names.end(), option.name) == names.end()) continue;
    if (option.group == "search") option.group = "scoring";
    if (option.name == "alignment")
      option.help =
          "print behind each score which words, or subwords, each target word attended to";
    if (option.name == "max-length")
      option.help = "longest source or target in tokens; longer ones are cropped, with a warning";
    option.initial = config::values(option);
    chosen.push_back(std::move(option));
  }
  return chosen;
}

}  // namespace
}  // namespace nmt::app

int main(int argc, char** argv) {
  using nmt::config::Option;
  nmt::app::Request request;
  nmt::SearchSpec search;
  nmt::config::Settings settings("nmt-score", "[OPTIONS] [MODEL] [SOURCE TARGET]",
                                 "prints the log probability of each target given its source");
  settings.add(nmt::app::fields(request.models))
      .add(nmt::config::in_group(
          "files",
          {Option("train-sets", &request.pair,
                  "source and target to score; the target may be an n-best list")
               .alias({"t"})
               .meta("FILE"),
           nmt::app::output_option(&request.output, "scores go, written whole or not at all"),
           Option("no-spm-encode", &request.pieces_in,
                  "both sides are in pieces of the vocabularies already")}))
      .add(nmt::config::in_group(
          "scoring",
          {Option("n-best", &request.format.n_best,
                  "the target is an n-best list in Moses' format: add the score to its features"),
           Option("n-best-feature", &request.format.n_best_feature, "name of that feature")
               .meta("NAME"),
           Option("word-scores", &request.format.word_scores,
                  "print the log probability of every piece and of </s> too"),
           Option("summary", &request.summary, "print one figure for all pairs in place of scores")
               .one_of({"", "cross-entropy", "ce-mean-words", "ce-sum", "perplexity"})
               .value_alone("cross-entropy")}))
      .add(nmt::app::scoring_fields(search))
      .positionals({"model", "train-sets"});
  return nmt::app::run_tool(argc, argv, settings, [&] {
    nmt::config::check(search);
    if (nmt::app::dump_if_asked(settings)) return nmt::ExitStatus::ok;
    nmt::app::part_files(request);
    if (request.models.models.empty())
      nmt::fail(nmt::ExitStatus::usage, "no model: say which with -m DIR");
    request.format.summary = nmt::summary_of(request.summary);
    request.format.alignment = !search.alignment.empty();
    if (request.format.alignment && (request.format.n_best || !request.summary.empty()))
      nmt::fail(nmt::ExitStatus::usage,
                "alignment: stands behind the score of a pair, and {} is asked too",
                request.format.n_best ? "n-best" : "summary");
    if (request.format.word_scores && !request.summary.empty())
      nmt::fail(nmt::ExitStatus::usage,
                "word-scores: stand behind the score of a pair, and summary is asked too");
    nmt::app::score(request, search);
    return nmt::ExitStatus::ok;
  });
}
