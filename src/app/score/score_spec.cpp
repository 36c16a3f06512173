#include "app/score/score_spec.h"

#include "app/common_options.h"
#include "app/files/line_input.h"
#include "config/fields.h"
#include "core/error.h"
#include "core/files/file.h"

#include <filesystem>
#include <utility>

namespace nmt::app {
namespace {

using config::Option;

/// The search options that apply to scoring.
std::vector<Option> scoring_fields(ScoreSpec& spec) {
  std::vector<Option> chosen =
      config::only({"normalize", "length-penalty", "coverage-penalty", "alignment", "max-length",
                    "mini-batch", "maxi-batch", "maxi-batch-sort"},
                   config::fields(spec.search, scoring_search()));
  for (Option& option : chosen)
    if (option.group == "search") option.group = "scoring";
  for (const char* const name : {"normalize", "length-penalty", "coverage-penalty"})
    config::named(chosen, name).idle_rule = [&spec] {
      return spec.summary != Summary::none ? "summary is given" : "";
    };
  config::named(chosen, "alignment").help = "source words or subwords each target word attends to";
  config::named(chosen, "max-length").help =
      "sentence length limit in tokens; longer sentences are cropped";
  return chosen;
}

}  // namespace

std::vector<Option> fields(ScoreSpec& spec) {
  ScoreOutput& format = spec.format;
  return joined(
      {fields(spec.models),
       config::in_group("files",
                        {Option("train-sets", &spec.files,
                                "source and target text; the target may be an n-best list")
                             .alias({"t"})
                             .meta("FILE..."),
                         output_option(&spec.output, "scores"),
                         Option("no-spm-encode", &spec.pieces_in,
                                "both sides are already split into pieces of the vocabularies")}),
       config::in_group(
           "scoring",
           {Option("n-best", &format.n_best,
                   "target is a Moses n-best list; add the score as a feature"),
            Option("n-best-feature", &format.n_best_feature, "name of the added n-best feature")
                .meta("NAME")
                .idle_when([&spec] {
                  if (spec.summary != Summary::none) return "summary is given";
                  return spec.format.n_best ? "" : "n-best is off";
                }),
            Option("word-scores", &format.word_scores, "log-probability of every piece"),
            Option("context", &spec.context,
                   "language model: context of a line: preceding text, or none"),
            Option("parts", &spec.parts, "language model: parallel parts of the text")
                .range(1, 10000),
            Option("summary", &spec.summary, "one number for all pairs instead of scores")
                .value_alone("cross-entropy")}),
       scoring_fields(spec), config::decoding_fields(spec.compute)});
}

void separate_files(ScoreSpec& spec) {
  std::vector<std::string>& models = spec.models.models;
  constexpr const char* usage =
      "usage: nmt-score MODEL SOURCE TARGET, for example nmt-score -m model test.en test.de";
  if (models.empty()) fail(ExitStatus::usage, "model: no directory given; {}", usage);
  std::error_code error;
  if (std::filesystem::is_regular_file(models.front(), error))
    fail(ExitStatus::usage, "model: {} is a file, not a model directory; {}", models.front(),
         usage);
  std::size_t first = models.empty() ? 0 : 1;
  while (first < models.size() && (is_directory(models[first]) || !spec.files.empty())) ++first;
  spec.files.insert(spec.files.end(), models.begin() + static_cast<std::ptrdiff_t>(first),
                    models.end());
  models.resize(first);
}

void check(const ScoreSpec& spec) {
  const std::string& feature = spec.format.n_best_feature;
  if (feature.empty() || feature.find_first_of(" \t\r\n\v\f=|") != std::string::npos)
    fail(ExitStatus::usage, "n-best-feature: '{}' is not one word without = and |", feature);
  config::check(spec.search);
  expect_one_standard_input(spec.files);
  const bool alignment = spec.search.alignment != AlignmentKind::none,
             summary = spec.summary != Summary::none;
  if (alignment && (spec.format.n_best || summary))
    fail(ExitStatus::usage, "alignment: requires a score per pair, which {} excludes",
         spec.format.n_best ? "n-best" : "summary");
  if (spec.format.word_scores && summary)
    fail(ExitStatus::usage, "word-scores: require a score per pair, which summary excludes");
}

}  // namespace nmt::app
