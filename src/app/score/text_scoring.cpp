#include "app/score/text_scoring.h"

#include "app/compute/compute.h"
#include "app/compute/weight_type.h"
#include "app/files/outputs.h"
#include "config/fields.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/log.h"
#include "model/directory/stored_weights.h"
#include "search/line_writer.h"
#include "tasks/language_model/loaded_language_model.h"
#include "tasks/language_model/text_score.h"
#include "text/lines.h"
#include "train/reporter.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/ranges.h>

namespace nmt::app {
namespace {

constexpr int resamples = 1000;
constexpr std::uint64_t resampling_seed = 12345;

struct Text {
  std::string name;
  std::vector<std::string> lines;
};

Text read(const std::vector<std::string>& files) {
  LineReader reader = LineReader::open(files.empty() ? "" : files[0]);
  Text text{reader.name(), {}};
  for (std::string line; reader.next(line);) text.lines.push_back(line);
  reader.notes().warn(reader.name());
  return text;
}

void refuse(bool given, const std::string& option, const char* model) {
  if (given) fail(ExitStatus::usage, "{}: has no meaning for a {} model", option, model);
}

void check_text(const ScoreSpec& spec) {
  if (spec.models.models.size() > 2)
    fail(ExitStatus::usage, "model: {} language models given, expected one, or two to compare",
         spec.models.models.size());
  if (spec.files.size() > 1)
    fail(ExitStatus::usage, "files to score: {}; a language model scores one",
         fmt::join(spec.files, ", "));
  refuse(spec.format.n_best, "n-best", "language");
  refuse(spec.pieces_in, "no-spm-encode", "language");
  SearchSpec search = spec.search;
  for (const config::Option& option : config::fields(search, scoring_search()))
    refuse(config::values(option) != option.initial, option.name, "language");
  refuse(!spec.models.weights.empty(), "weights", "language");
  refuse(spec.models.combination != EnsembleSpec{}.combination, "ensemble", "language");
  refuse(spec.compute.workers != ComputeSpec{}.workers, "workers", "language");
  const bool two = spec.models.models.size() == 2;
  if (two && spec.format.word_scores)
    fail(ExitStatus::usage, "word-scores: the difference of two models has one score per line");
  if (two && spec.summary != Summary::none)
    fail(ExitStatus::usage, "summary: two language models give a score per line");
  if (two && spec.context == LineContext::text)
    fail(ExitStatus::usage, "context: two language models compare lines without their context");
  if ((two || spec.context == LineContext::line) && spec.parts > 1)
    fail(ExitStatus::usage, "parts: {} requires context=text and one model", spec.parts);
}

std::vector<LineScore> scores_of(const std::string& directory, const ScoreSpec& spec,
                                 const Text& text, Context context) {
  const bool two = spec.models.models.size() == 2;
  const Dtype described = context.weights;
  if (!spec.compute.precision && context.backend->low_precision_weights)
    set_weight_type(context, ModelDirectory::open(directory).weights());
  if (context.weights != described) log::info("{}: {}", directory, precision_name(context.weights));
  LoadedLanguageModel loaded(directory, context);
  ScoringSettings settings;
  settings.context = spec.context.value_or(two ? LineContext::line : LineContext::text);
  settings.parts = spec.parts;
  std::vector<LineScore> scores =
      score_lines(loaded.model(), loaded.vocabulary(), text.lines, settings);
  std::int64_t words = 0, tokens = 0, unknown = 0, sentences = 0, number = 0;
  for (const LineScore& score : scores) {
    ++number;
    if (!std::isfinite(score.log_probability))
      fail(ExitStatus::failed,
           "{}: line {}: the score of {} is {}: a weight or a state is not finite; try --context "
           "line, or train with a lower learn-rate, with layer-normalization, or with another unit",
           text.name, number, directory, score.log_probability);
    words += score.words;
    tokens += score.tokens;
    unknown += score.unknown;
    sentences += score.words > 0;
  }
  if (words == 0 && spec.summary != Summary::none)
    fail(ExitStatus::data, "{}: no line with text, so there is no summary", text.name);
  if (words == 0) {
    log::warn("{}: no line with text", text.name);
    return scores;
  }
  const PerplexityInterval interval = perplexity_interval(scores, resamples, resampling_seed);
  log::info(
      "{}: perplexity {:.2f} per word, 95 % interval {:.2f} to {:.2f}; {} words with </s> in {} "
      "lines, {} tokens, {} unknown",
      directory, perplexity(scores), interval.low, interval.high, grouped(words),
      grouped(sentences), grouped(tokens), grouped(unknown));
  return scores;
}

double summary_of(const std::vector<LineScore>& scores, Summary summary) {
  double sum = 0;
  std::int64_t sentences = 0, words = 0;
  for (const LineScore& score : scores) {
    sum -= score.log_probability;
    words += score.words;
    sentences += score.words > 0;
  }
  switch (summary) {
    case Summary::cross_entropy: return sum / static_cast<double>(sentences);
    case Summary::ce_mean_words: return sum / static_cast<double>(words);
    case Summary::perplexity: return perplexity(scores);
    case Summary::ce_sum:
    case Summary::none: break;
  }
  return sum;
}

std::string text_of(const LineScore& score, bool word_scores) {
  std::string text = fmt::format("{:.6f}", score.log_probability);
  if (!word_scores) return text;
  text += " ||| WordScores=";
  for (const double each : score.token_scores) text += fmt::format(" {:.5f}", each);
  return text;
}

}  // namespace

bool scores_text(const ScoreSpec& spec) {
  check(spec.models);
  const std::string& model = spec.models.models.front();
  // A missing directory is an error once the device is open.
  if (!is_directory(model)) return false;
  const ModelDirectory directory = ModelDirectory::open(model);
  directory.require({Task::translation, Task::language_model});
  return directory.spec().task == Task::language_model;
}

void refuse_text_options(const ScoreSpec& spec) {
  refuse(spec.context.has_value(), "context", "translation");
  refuse(spec.parts != ScoreSpec{}.parts, "parts", "translation");
}

void score_text(const ScoreSpec& spec) {
  check_text(spec);
  const std::vector<std::string>& models = spec.models.models;
  for (const std::string& model : models) ModelDirectory::open(model).require(Task::language_model);
  const Text text = read(spec.files);
  check_outputs({{or_standard_stream(spec.files.empty() ? "" : spec.files[0])}, models},
                {{"output", or_standard_stream(spec.output)}});
  LineWriter writer(spec.output);
  ComputeSpec compute_spec = spec.compute;
  if (!compute_spec.precision)
    compute_spec.stored_precision = decoding_precision(std::nullopt, models);
  Compute compute(compute_spec);
  log::info("{}", compute.describe("nmt-score"));
  const std::unique_ptr<Arena> arena = compute.new_arena();
  const Context context = compute.context(*arena);
  const std::vector<LineScore> scores = scores_of(models[0], spec, text, context);
  if (models.size() == 2) {
    const std::vector<LineScore> others = scores_of(models[1], spec, text, context);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const auto words = static_cast<double>(std::max<std::int64_t>(scores[i].words, 1));
      writer.write(
          fmt::format("{:.6f}\n", (scores[i].log_probability - others[i].log_probability) / words));
    }
  } else if (spec.summary != Summary::none) {
    writer.write(fmt::format("{:.6f}\n", summary_of(scores, spec.summary)));
  } else {
    for (const LineScore& score : scores)
      writer.write(text_of(score, spec.format.word_scores) + "\n");
  }
  writer.flush();
  writer.commit();
}

}  // namespace nmt::app
