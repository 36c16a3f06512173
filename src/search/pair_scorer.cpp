#include "search/pair_scorer.h"

#include "core/error.h"
#include "core/log.h"
#include "core/threads/thread_pool.h"
#include "search/beam/force_decode.h"
#include "search/source_text_scorer.h"

#include <algorithm>
#include <cmath>
#include <mutex>

namespace nmt {

PairScorer::PairScorer(StepScorer& scorer, const Vocabulary& source, const Vocabulary& target,
                       PairScorerOptions options)
    : scorer_(scorer),
      source_(source),
      target_(target),
      options_(std::move(options)),
      encoder_(source, options_.context_sentences, options_.batching.max_length,
               options_.pieces_in) {
  options_.batching.check();
  require_same_size(scorer, target);
  if (options_.pieces_in) target_pieces_.emplace(target);
}

void PairScorer::note_crop(std::size_t tokens, std::int64_t line, const char* side) {
  const auto max_length = static_cast<std::size_t>(options_.batching.max_length);
  if (tokens <= max_length) return;
  if (totals_.cropped++ == 0)
    log::warn(
        "the {} of pair {} has {} tokens, only the first {} are scored (max-length); further "
        "cropped lines are not reported individually",
        side, line, tokens, max_length);
}

std::vector<PairScore> PairScorer::score(std::span<const std::string> sources,
                                         std::span<const std::string> targets,
                                         std::int64_t first_line,
                                         std::span<const ContextSentences> contexts) {
  NMT_CHECK(sources.size() == targets.size(),
            "cannot score {} sources with {} targets: expected equal numbers", sources.size(),
            targets.size());
  ThreadPool& pool = options_.crew.widest(*options_.cpu.pool);
  const std::vector<EncodedSource> encoded = encoder_.encode(sources, contexts, pool);
  std::vector<Ids> target_ids(targets.size());
  pool.parallel_for(
      static_cast<std::int64_t>(targets.size()), 16, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          target_ids[i] =
              target_pieces_ ? target_pieces_->encode(targets[i]) : target_.encode(targets[i]);
      });
  const auto max_length = static_cast<std::size_t>(options_.batching.max_length);
  std::vector<std::size_t> pairs, lengths(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::int64_t line = first_line + static_cast<std::int64_t>(i);
    note_crop(encoded[i].tokens, line, "source");
    note_crop(target_ids[i].size(), line, "target");
    target_ids[i].resize(std::min(target_ids[i].size(), max_length));
    lengths[i] = std::max(encoded[i].source.ids.size(), target_ids[i].size());
    if (lengths[i] > 0) pairs.push_back(i);
  }
  if (options_.on_batch)
    options_.on_batch(static_cast<std::int64_t>(sources.size() - pairs.size()));
  std::vector<PairScore> scores(sources.size());
  const std::vector<std::vector<std::size_t>> batches =
      options_.batching.cut(std::move(pairs), lengths, options_.crew.size());
  std::mutex one_at_a_time;
  options_.crew.run(
      {&scorer_, options_.cpu}, batches.size(), [&](const Worker& worker, std::size_t i) {
        score_batch(worker, batches[i], sources, targets, encoded, target_ids, scores);
        if (!options_.on_batch) return;
        const std::lock_guard lock(one_at_a_time);
        options_.on_batch(static_cast<std::int64_t>(batches[i].size()));
      });
  for (const PairScore& score :
       scores) {  // in the order of lines, so that the sum does not depend on the batches
    totals_.sentences += !score.word_scores.empty();  // pairs without text are not scored
    totals_.tokens += static_cast<std::int64_t>(score.word_scores.size());
    totals_.log_prob += score.log_prob;
  }
  return scores;
}

void PairScorer::score_batch(const Worker& worker, std::span<const std::size_t> batch,
                             std::span<const std::string> sources,
                             std::span<const std::string> targets,
                             std::span<const EncodedSource> encoded,
                             std::span<const Ids> target_ids, std::vector<PairScore>& scores) {
  const bool covers = options_.ranking.coverage_penalty != 0.0,
             aligns = options_.alignment != AlignmentKind::none,
             attends = covers || aligns || options_.attention;
  std::vector<Ids> batch_sources, batch_targets;
  std::vector<std::size_t> lengths;
  std::vector<std::string> texts;
  for (const std::size_t pair : batch) {
    batch_sources.push_back(encoded[pair].source.ids);
    batch_targets.push_back(target_ids[pair]);
    lengths.push_back(std::max(batch_sources.back().size(), target_ids[pair].size()));
    texts.push_back(sources[pair]);
  }
  std::vector<ForcedScore> forced(batch.size());
  oom_splitter_.run(lengths, [&](std::size_t first, std::size_t count) {
    SourceTextScorer scorer(*worker.scorer, std::span(texts).subspan(first, count));
    std::vector<ForcedScore> part = force_decode(
        scorer, std::span(batch_sources).subspan(first, count),
        std::span(batch_targets).subspan(first, count), attends, target_.bos(), target_.eos());
    std::move(part.begin(), part.end(), forced.begin() + static_cast<std::ptrdiff_t>(first));
  });
  std::vector<double> attended;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    PairScore& score = scores[batch[i]];
    const SourceIds& source = encoded[batch[i]].source;
    const auto steps = source.ids.size() + 1;
    attended.assign(source.sentence().size(), 0.0);
    for (std::size_t at = 0; at < forced[i].attention.size(); ++at)
      if (const std::size_t step = at % steps; step >= source.context && step + 1 < steps)
        attended[step - source.context] += forced[i].attention[at];
    score.log_prob = forced[i].log_prob;
    score.score =
        options_.ranking.score(score.log_prob, static_cast<int>(batch_targets[i].size()) + 1,
                               covers ? coverage(attended) : 0.0);
    score.word_scores = std::move(forced[i].log_probs);
    if (aligns)
      score.alignment =
          hard_alignment(forced[i].attention, static_cast<int>(steps),
                         groups_of_source(options_.alignment, source_, sources[batch[i]], source,
                                          options_.pieces_in),
                         groups_of_line(options_.alignment, target_, targets[batch[i]],
                                        batch_targets[i], options_.pieces_in));
    if (options_.attention) score.attention = std::move(forced[i].attention);
  }
}

double summarize(const PairScorer::Totals& totals, Summary summary) {
  const double sum = -totals.log_prob;
  const double words = static_cast<double>(std::max<std::int64_t>(totals.tokens, 1));
  switch (summary) {
    case Summary::cross_entropy:
      return sum / static_cast<double>(std::max<std::int64_t>(totals.sentences, 1));
    case Summary::ce_mean_words: return sum / words;
    case Summary::perplexity: return std::exp(sum / words);
    case Summary::ce_sum:
    case Summary::none: break;
  }
  return sum;
}

}  // namespace nmt
