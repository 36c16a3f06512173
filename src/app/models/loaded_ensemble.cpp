#include "app/models/loaded_ensemble.h"

#include "app/compute/recurrence_log.h"
#include "app/compute/weight_type.h"
#include "config/precision.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/log.h"
#include "kernels/decoding/ensemble.h"
#include "model/directory/stored_weights.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>

namespace nmt::app {
namespace {

// Id of the first symbol that differs between two vocabularies, or -1.
int first_difference(const Vocabulary& a, const Vocabulary& b) {
  if (a.bytes() == b.bytes()) return -1;
  const int both = std::min(a.size(), b.size());
  for (int id = 0; id < both; ++id)
    if (a.piece(id) != b.piece(id)) return id;
  return a.size() == b.size() ? -1 : both;
}

const EnsembleSpec& checked(const EnsembleSpec& spec) {
  check(spec);
  return spec;
}

Compute& logged(Compute& compute, const std::string& title) {
  log::info("{}", compute.describe(title));
  return compute;
}

// With the precision of the model directories.
ComputeSpec resolved(ComputeSpec compute_spec, const EnsembleSpec& ensemble) {
  if (!compute_spec.precision)
    compute_spec.stored_precision = decoding_precision(std::nullopt, ensemble.models);
  return compute_spec;
}

}  // namespace

std::vector<config::Option> fields(EnsembleSpec& spec) {
  using config::Option;
  const auto alone = [&spec] {
    return spec.models.size() == 1 && spec.language_model.empty() ? "there is one model" : "";
  };
  return config::in_group(
      "files",
      {Option("model", &spec.models, "model directory, or several for an ensemble")
           .alias({"m", "models"})
           .meta("DIR..."),
       Option("weights", &spec.weights, "weight of each model, above 0")
           .unset_means("equal weights")
           .meta("W...")
           .idle_when([&spec] { return spec.models.size() == 1 ? "there is one model" : ""; }),
       Option("ensemble", &spec.combination,
              "averaged quantity: log-probabilities (geometric mean) or probabilities")
           .idle_when(alone)});
}

std::vector<config::Option> fusion_fields(EnsembleSpec& spec) {
  using config::Option;
  return config::in_group("search",
                          {Option("lm", &spec.language_model, "language model for shallow fusion")
                               .unset_means("none")
                               .meta("DIR"),
                           Option("lm-weight", &spec.language_model_weight,
                                  "weight of the language model's log-probabilities")
                               .range(0, 100)});
}

void check(const EnsembleSpec& spec) {
  if (spec.models.empty())
    fail(ExitStatus::usage, "model: no directory given (on a command line: -m DIR)");
  if (!spec.weights.empty() && spec.weights.size() != spec.models.size())
    fail(ExitStatus::usage, "weights: {} weights given for {} models; expected one per model",
         spec.weights.size(), spec.models.size());
  for (const double weight : spec.weights)
    if (!(weight > 0) || !std::isfinite(weight))
      fail(ExitStatus::usage, "weights: {} is not above 0", weight);
  if (spec.language_model.empty() &&
      spec.language_model_weight != EnsembleSpec{}.language_model_weight)
    fail(ExitStatus::usage, "lm-weight: there is no language model; lm names its directory");
  if (!spec.language_model.empty() && spec.combination == Combination::probabilities)
    fail(ExitStatus::usage, "lm: requires ensemble=log-probabilities, not probabilities");
}

void require_one_target(const char* option, const std::string& first, const Vocabulary& of_first,
                        const std::string& model, const Vocabulary& of_model) {
  if (const int id = first_difference(of_first, of_model); id >= 0)
    fail(ExitStatus::usage,
         "{}: {} and {} have different target vocabularies ({} and {} symbols, different from "
         "symbol {} on); the models of an ensemble must share it",
         option, first, model, of_first.size(), of_model.size(), id);
}

Precision decoding_precision(std::optional<Precision> precision,
                             const std::vector<std::string>& models) {
  if (precision) return *precision;
  // Missing directories are reported when they are loaded, after the log line about the device.
  if (models.empty() || !std::all_of(models.begin(), models.end(),
                                     [](const std::string& name) { return is_directory(name); }))
    return Precision::float32;
  const Dtype weights = ModelDirectory::open(models.front()).weights();
  const bool same = std::all_of(models.begin(), models.end(), [&](const std::string& name) {
    return ModelDirectory::open(name).weights() == weights;
  });
  return same ? parse_enum<Precision>(precision_name(weights), "precision") : Precision::float32;
}

LoadedEnsemble::LoadedEnsemble(const EnsembleSpec& spec, const Context& context,
                               std::optional<Precision> precision, int max_length, bool pieces_in)
    : language_model_weight_(spec.language_model_weight),
      weights_(spec.weights),
      combination_(spec.combination),
      max_length_(max_length) {
  check(spec);
  const std::vector<std::string>& names = spec.models;
  std::error_code error;
  for (const std::string& name : names)
    if (std::filesystem::exists(name, error) && !is_directory(name))
      fail(ExitStatus::usage,
           "model: {} is a file, not a model directory (an option that takes several names takes "
           "all up to the next option)",
           name);
  const std::size_t all =
      names.size() + (spec.language_model.empty() || spec.language_model_weight == 0 ? 0 : 1);
  if (!context.backend->host_memory && all > kernels::max_members)
    fail(ExitStatus::usage, "model: {} models; an ensemble on a GPU has at most {}", all,
         kernels::max_members);
  std::vector<EnsembleScorer::Member> members;
  for (std::size_t i = 0; i < names.size(); ++i) {
    Context member_context = context;
    if (!precision && context.backend->low_precision_weights)
      set_weight_type(member_context, ModelDirectory::open(names[i]).weights());
    if (member_context.weights != context.weights)
      log::info("{}: {}", names[i], precision_name(member_context.weights));
    models_.push_back(LoadedModel::load(names[i], member_context));
    log_recurrences(member_context, models_.back()->model().parameters());
    LoadedModel &first = *models_.front(), &model = *models_.back();
    require_one_target("model", names[0], first.target_vocabulary(), names[i],
                       model.target_vocabulary());
    const auto sentences = [](LoadedModel& of) { return of.model().spec().context_sentences; };
    if (sentences(first) != sentences(model))
      fail(ExitStatus::usage,
           "model: {} reads {} context sentences, {} reads {}; the models of an ensemble must read "
           "the same number",
           names[0], sentences(first), names[i], sentences(model));
    members.push_back(member(i, model.scorer()));
    if (members.back().source && sentences(model) > 0)
      fail(ExitStatus::usage,
           "model: {} and {} read context sentences: an ensemble of such models needs equal "
           "source vocabularies",
           names[0], names[i]);
    if (members.back().source && pieces_in)
      fail(ExitStatus::usage,
           "no-spm-encode: {} and {} have different source vocabularies; give plain text instead",
           names[0], names[i]);
  }
  if (!spec.language_model.empty())
    ModelDirectory::open(spec.language_model).require(Task::language_model);
  if (!spec.language_model.empty() && language_model_weight_ > 0) {
    Context member_context = context;
    if (!precision && context.backend->low_precision_weights)
      set_weight_type(member_context, ModelDirectory::open(spec.language_model).weights());
    language_model_ = std::make_unique<LoadedLanguageModel>(spec.language_model, member_context);
    const Vocabulary &mine = language_model_->vocabulary(), &theirs = target_vocabulary();
    if (const int id = first_difference(theirs, mine); id >= 0)
      fail(ExitStatus::usage,
           "lm: {} has another vocabulary than the target side of {} ({} and {} symbols, different "
           "from symbol {} on); train it with the target vocabulary of that model (vocabs)",
           spec.language_model, names[0], mine.size(), theirs.size(), id);
    language_scorer_.emplace(language_model_->model(), mine.eos());
    members.push_back(added(*language_scorer_));
  }
  if (members.size() > 1)
    ensemble_.emplace(context.cpu, std::move(members), combination_, max_length_, crop_warning_);
}

EnsembleScorer::Member LoadedEnsemble::member(std::size_t model, StepScorer& scorer) const {
  const Vocabulary& source = models_[model]->source_vocabulary();
  const bool own = source.bytes() != source_vocabulary().bytes();
  return {&scorer, own ? &source : nullptr, weights_.empty() ? 1.0 : weights_[model]};
}

EnsembleScorer::Member LoadedEnsemble::added(StepScorer& scorer) const {
  return {&scorer, nullptr, language_model_weight_, true};
}

namespace {

Context with_weights(Context context, Dtype type) {
  set_weight_type(context, type);
  return context;
}

// Scorers of models, and the one that combines them.
struct Members {
  std::deque<ModelScorer> scorers;
  std::optional<LanguageModelScorer> language_model;
  std::optional<EnsembleScorer> ensemble;
};

}  // namespace

std::shared_ptr<StepScorer> LoadedEnsemble::scorer_on(const Context& context) const {
  const auto shared = std::make_shared<Members>();
  std::vector<EnsembleScorer::Member> members;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    const Vocabulary& target = models_[i]->target_vocabulary();
    const Context member_context = with_weights(context, models_[i]->model().context().weights);
    members.push_back(member(i, shared->scorers.emplace_back(models_[i]->model(), member_context,
                                                             target.bos(), target.eos())));
  }
  if (language_model_) {
    const Context member_context =
        with_weights(context, language_model_->model().context().weights);
    members.push_back(added(shared->language_model.emplace(language_model_->model(), member_context,
                                                           language_model_->vocabulary().eos())));
  }
  if (members.size() == 1) return {shared, &shared->scorers.front()};
  shared->ensemble.emplace(context.cpu, std::move(members), combination_, max_length_,
                           crop_warning_);
  return {shared, &*shared->ensemble};
}

Inference::Inference(const std::string& title, const EnsembleSpec& ensemble,
                     const SearchSpec& search, const ComputeSpec& compute_spec, bool pieces_in)
    : compute(resolved(compute_spec, checked(ensemble))),
      arena(logged(compute, title).new_arena()),
      models(ensemble, compute.context(*arena), compute_spec.precision, search.max_length,
             pieces_in) {}

}  // namespace nmt::app
