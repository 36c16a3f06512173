#include "nmt/scorer.h"

#include "app/score/score.h"
#include "core/error.h"
#include "library/lines.h"
#include "library/log_level.h"
#include "library/options.h"

#include <algorithm>
#include <mutex>
#include <span>

namespace nmt {
namespace {

app::ScoreSpec spec_of(const std::vector<std::string>& models, const ScorerOptions& options) {
  library::use_default_log_level();
  app::ScoreSpec spec;
  config::Settings settings("nmt::Scorer", "", "");
  settings.add(library::without(app::fields(spec), {"model", "train-sets", "output", "n-best",
                                                    "n-best-feature", "word-scores", "summary"}));
  library::read(library::members(options), library::members(ScorerOptions{}), options.settings,
                settings);
  spec.models.models = models;
  return spec;
}

}  // namespace

struct Scorer::Impl {
  explicit Impl(const app::ScoreSpec& spec) : open(spec, "nmt::Scorer") {}
  app::OpenScorer open;
  std::mutex one_call;
};

Scorer::Scorer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Scorer::Scorer(const std::string& model, const ScorerOptions& options)
    : impl_(std::make_unique<Impl>(spec_of({model}, options))) {}
Scorer Scorer::ensemble(const std::vector<std::string>& models, const ScorerOptions& options) {
  return Scorer(std::make_unique<Impl>(spec_of(models, options)));
}
Scorer::Scorer(Scorer&&) noexcept = default;
Scorer& Scorer::operator=(Scorer&&) noexcept = default;
Scorer::~Scorer() = default;

std::vector<PairProbability> Scorer::score(const std::vector<std::string>& sources,
                                           const std::vector<std::string>& targets) {
  if (sources.size() != targets.size())
    fail(ExitStatus::data, "score: {} sources and {} targets; the numbers must be equal",
         sources.size(), targets.size());
  const std::vector<std::string> from = library::clean(sources, "score: sources"),
                                 to = library::clean(targets, "score: targets");
  std::vector<PairProbability> result;
  result.reserve(from.size());
  PairScorer& scorer = impl_->open.scorer();
  for (std::size_t begin = 0; begin < from.size(); begin += scorer.window()) {
    const std::size_t count = std::min(scorer.window(), from.size() - begin);
    std::vector<PairScore> scores;
    {
      const std::lock_guard lock(impl_->one_call);
      scores =
          scorer.score(std::span(from).subspan(begin, count), std::span(to).subspan(begin, count),
                       static_cast<std::int64_t>(begin) + 1);
    }
    for (PairScore& pair : scores) {
      PairProbability each{pair.log_prob, pair.score, std::move(pair.word_scores), {}};
      for (const AlignmentPoint& point : pair.alignment)
        each.alignment.push_back({point.source, point.target});
      result.push_back(std::move(each));
    }
  }
  return result;
}

}  // namespace nmt
