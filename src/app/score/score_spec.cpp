#include "app/score/score_spec.h"

#include "app/common_options.h"
#include "config/fields.h"
#include "core/error.h"

#include <filesystem>
#include <utility>

namespace nmt::app {
namespace {

using config::Option;

/// The part of the search's settings that scoring has.
std::vector<Option> scoring_fields(SearchSpec& spec) {
  std::vector<Option> chosen =
      config::only({"normalize", "length-penalty", "coverage-penalty", "alignment", "max-length",
                    "mini-batch", "maxi-batch", "maxi-batch-sort"},
                   config::fields(spec, scoring_search()));
  for (Option& option : chosen)
    if (option.group == "search") option.group = "scoring";
  config::named(chosen, "alignment").help =
      "print behind each score which words, or subwords, each target word attended to";
  config::named(chosen, "max-length").help =
      "longest source or target in tokens; longer ones are cropped, with a warning";
  return chosen;
}

}  // namespace

std::vector<Option> fields(ScoreSpec& spec) {
  ScoreOutput& format = spec.format;
  return joined(
      {fields(spec.models),
       config::in_group("files",
                        {Option("train-sets", &spec.files,
                                "source and target to score; the target may be an n-best list")
                             .alias({"t"})
                             .meta("FILE"),
                         output_option(&spec.output, "scores go, written whole or not at all"),
                         Option("no-spm-encode", &spec.pieces_in,
                                "both sides consist of pieces of the vocabularies")}),
       config::in_group(
           "scoring",
           {Option("n-best", &format.n_best,
                   "the target is an n-best list in Moses' format: add the score to its features"),
            Option("n-best-feature", &format.n_best_feature, "name of that feature").meta("NAME"),
            Option("word-scores", &format.word_scores,
                   "print the log probability of every piece and of </s> too"),
            Option("summary", &spec.summary, "print one figure for all pairs in place of scores")
                .value_alone("cross-entropy")}),
       scoring_fields(spec.search), config::decoding_fields(spec.compute)});
}

void separate_files(ScoreSpec& spec) {
  std::vector<std::string>& models = spec.models.models;
  std::size_t first = models.empty() ? 0 : 1;
  while (first < models.size() &&
         (std::filesystem::is_directory(models[first]) || !spec.files.empty()))
    ++first;
  spec.files.insert(spec.files.end(), models.begin() + static_cast<std::ptrdiff_t>(first),
                    models.end());
  models.resize(first);
}

void check(const ScoreSpec& spec) {
  config::check(spec.search);
  const bool alignment = spec.search.alignment != AlignmentKind::none,
             summary = spec.summary != Summary::none;
  if (alignment && (spec.format.n_best || summary))
    fail(ExitStatus::usage, "alignment: requires a score per pair, which {} excludes",
         spec.format.n_best ? "n-best" : "summary");
  if (spec.format.word_scores && summary)
    fail(ExitStatus::usage, "word-scores: require a score per pair, which summary excludes");
}

}  // namespace nmt::app
