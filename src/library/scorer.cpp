#include "nmt/scorer.h"

#include "app/score/score.h"
#include "core/error.h"
#include "core/number_text.h"
#include "library/lines.h"
#include "library/options.h"
#include "library/translator_impl.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <span>
#include <utility>

#include <fmt/ranges.h>

namespace nmt {
namespace {

app::ScoreSpec spec_of(const std::vector<std::string>& models, const ScorerOptions& options) {
  app::ScoreSpec spec;
  spec.models.models = models;  // first: what has no effect on one model is refused
  config::Settings settings("nmt::Scorer", "", "");
  settings.add(config::without({"model", "train-sets", "output", "n-best", "n-best-feature",
                                "word-scores", "summary", "context", "parts"},
                               app::fields(spec)));
  library::read(library::members(options), library::members(ScorerOptions{}), options.settings,
                settings);
  spec.attention = options.attention;
  return spec;
}

app::ScoreSpec shared_spec(const library::SharedModels& shared, const ScorerOptions& options) {
  if (const auto& added = shared.settings.at("lm"); !added.empty() && !added[0].empty())
    fail(ExitStatus::usage,
         "nmt::Scorer: the translator adds the language model {} to its scores; load {} without it",
         added[0], fmt::join(shared.directories, ", "));
  app::ScoreSpec spec = spec_of(shared.directories, options);
  app::ScoreSpec fresh;
  library::adopt_loading_settings(shared.settings, app::fields(spec),
                                  library::loading_settings(app::fields(fresh)));
  return spec;
}

PairProbability public_score(PairScore&& pair) {
  PairProbability result{pair.log_prob, pair.score, std::move(pair.word_scores), {}, {}};
  for (const AlignmentPoint& point : pair.alignment)
    result.alignment.push_back({point.source, point.target});
  result.attention =
      library::public_attention(std::move(pair.attention), result.token_log_probs.size());
  return result;
}

}  // namespace

struct Scorer::Impl {
  explicit Impl(const app::ScoreSpec& spec)
      : shared(std::make_shared<library::SharedModels>()), open(spec, "nmt::Scorer") {}
  Impl(std::shared_ptr<library::SharedModels> models, const ScorerOptions& options)
      : shared(std::move(models)),
        open(shared_spec(*shared, options), "nmt::Scorer", shared->models) {}
  /// The contexts of the clean sources of a call; none if the model reads none.
  std::vector<ContextSentences> contexts(std::span<const std::string> sources) {
    return contexts_of(sources, open.scorer().context_sentences());
  }
  /// Scores clean sources and targets.
  std::vector<PairProbability> score(std::span<const std::string> from,
                                     std::span<const std::string> to,
                                     std::span<const ContextSentences> contexts,
                                     const ShouldStop& stop);

  std::shared_ptr<library::SharedModels> shared;  // without a translator: the lock alone
  app::OpenScorer open;
};

Scorer::Scorer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Scorer::Scorer(const std::string& model, const ScorerOptions& options)
    : impl_(std::make_unique<Impl>(spec_of({model}, options))) {}
Scorer Scorer::ensemble(const std::vector<std::string>& models, const ScorerOptions& options) {
  return Scorer(std::make_unique<Impl>(spec_of(models, options)));
}
Scorer::Scorer(const Translator& translator, const ScorerOptions& options)
    : impl_(std::make_unique<Impl>(translator.impl_->shared, options)) {}
Scorer::Scorer(Scorer&&) noexcept = default;
Scorer& Scorer::operator=(Scorer&&) noexcept = default;
Scorer::~Scorer() = default;

std::vector<PairProbability> Scorer::score(const std::vector<std::string>& sources,
                                           const std::vector<std::string>& targets,
                                           const ShouldStop& stop) {
  if (sources.size() != targets.size())
    fail(ExitStatus::data, "score: {} and {}; the numbers must be equal",
         counted(std::ssize(sources), "source"), counted(std::ssize(targets), "target"));
  const std::vector<std::string> from = library::clean(sources, "score: sources"),
                                 to = library::clean(targets, "score: targets");
  return impl_->score(from, to, impl_->contexts(from), stop);
}

std::vector<PairProbability> Scorer::Impl::score(std::span<const std::string> from,
                                                 std::span<const std::string> to,
                                                 std::span<const ContextSentences> contexts,
                                                 const ShouldStop& stop) {
  std::vector<PairProbability> result;
  result.reserve(from.size());
  PairScorer& scorer = open.scorer();
  for (std::size_t begin = 0; begin < from.size(); begin += scorer.window()) {
    const std::size_t count = std::min(scorer.window(), from.size() - begin);
    std::vector<PairScore> scores;
    {
      const auto lock = shared->lock_call(stop);
      open.on_batch(library::stop_between_batches(stop));
      scores = scorer.score(from.subspan(begin, count), to.subspan(begin, count),
                            static_cast<std::int64_t>(begin) + 1,
                            contexts.empty() ? contexts : contexts.subspan(begin, count));
    }
    for (PairScore& pair : scores) result.push_back(public_score(std::move(pair)));
  }
  return result;
}

std::vector<std::vector<PairProbability>> Scorer::score_n_best(
    const std::vector<std::string>& sources, const std::vector<std::vector<std::string>>& targets,
    const ShouldStop& stop) {
  if (sources.size() != targets.size())
    fail(ExitStatus::data,
         "score_n_best: {} sources and {} lists of targets; the numbers must be equal",
         sources.size(), targets.size());
  std::vector<std::string> lines = library::clean(sources, "score_n_best: sources");
  std::vector<ContextSentences> contexts = impl_->contexts(lines);
  std::vector<std::string> from, to;
  std::vector<ContextSentences> contexts_of_pairs;
  // Each target but the last has a copy.
  const auto repeat = [](auto& all, auto& value, std::size_t count) {
    if (count == 0) return;
    all.insert(all.end(), count - 1, value);
    all.push_back(std::move(value));
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    repeat(from, lines[i], targets[i].size());
    const std::string name = fmt::format("score_n_best: targets of source {}", i + 1);
    for (std::string& target : library::clean(targets[i], name.c_str()))
      to.push_back(std::move(target));
    if (!contexts.empty()) repeat(contexts_of_pairs, contexts[i], targets[i].size());
  }
  std::vector<PairProbability> scores = impl_->score(from, to, contexts_of_pairs, stop);
  std::vector<std::vector<PairProbability>> result;
  auto next = std::make_move_iterator(scores.begin());
  for (const std::vector<std::string>& list : targets) {
    const auto end = next + static_cast<std::ptrdiff_t>(list.size());
    result.emplace_back(next, end);
    next = end;
  }
  return result;
}

}  // namespace nmt
