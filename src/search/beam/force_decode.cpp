#include "search/beam/force_decode.h"

#include "core/error.h"
#include "search/beam/top_k.h"

#include <cmath>
#include <memory>

namespace nmt {

std::vector<ForcedScore> force_decode(StepScorer& scorer,
                                      std::span<const std::vector<std::int32_t>> sources,
                                      std::span<const std::vector<std::int32_t>> targets,
                                      bool want_attention, std::int32_t bos, std::int32_t eos) {
  NMT_CHECK(sources.size() == targets.size(),
            "cannot score {} sources with {} targets: expected equal numbers", sources.size(),
            targets.size());
  const int vocabulary = scorer.vocabulary();
  std::vector<ForcedScore> scores(sources.size());
  if (sources.empty()) return scores;
  std::vector<std::int32_t> parents, tokens, pairs, wanted;  // of the active rows
  for (std::size_t i = 0; i < sources.size(); ++i) {
    for (const std::int32_t id : targets[i])
      NMT_CHECK(id >= 0 && id < vocabulary, "target id {} is outside the vocabulary of {}", id,
                vocabulary);
    parents.push_back(static_cast<std::int32_t>(i));
    pairs.push_back(static_cast<std::int32_t>(i));
    tokens.push_back(bos);
    scores[i].log_probs.reserve(targets[i].size() + 1);
  }
  // No step depends on the scores of another, so the scores are read at the end.
  struct Step {
    std::vector<std::int32_t> pairs;
    TokenScores scores;
  };
  std::vector<Step> steps;
  const std::unique_ptr<Decoding> decoding = scorer.begin(sources, want_attention);
  for (std::size_t step = 0; !pairs.empty(); ++step) {
    const DecodingStep next = decoding->advance(parents, tokens);
    NMT_CHECK(next.rows == static_cast<int>(pairs.size()),
              "the scorer returned {} rows for {} pairs", next.rows, pairs.size());
    NMT_CHECK(!want_attention || next.attention,
              "the scorer returned no attention although it was requested");
    wanted.clear();
    for (const std::int32_t pair : pairs)
      wanted.push_back(step == targets[pair].size() ? eos : targets[pair][step]);
    steps.push_back({pairs, TokenScores(*decoding, next, vocabulary, wanted)});
    std::size_t live = 0;
    for (std::size_t row = 0; row < pairs.size(); ++row) {
      const std::int32_t pair = pairs[row];
      if (want_attention) {
        const float* from = next.attention + row * next.source_steps;
        scores[pair].attention.insert(scores[pair].attention.end(), from,
                                      from + sources[pair].size() + 1);
      }
      if (step == targets[pair].size()) continue;
      parents[live] = static_cast<std::int32_t>(row);
      tokens[live] = wanted[row];
      pairs[live++] = pair;
    }
    parents.resize(live);
    tokens.resize(live);
    pairs.resize(live);
  }
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const std::vector<float> log_probs = steps[step].scores.read();
    for (std::size_t row = 0; row < log_probs.size(); ++row) {
      const std::int32_t pair = steps[step].pairs[row];
      const std::int32_t token = step == targets[pair].size() ? eos : targets[pair][step];
      NMT_CHECK(!std::isnan(log_probs[row]) && log_probs[row] < 1e30f,
                "the model's score of token {} is {}: a weight or a state is not finite", token,
                log_probs[row]);
      scores[pair].log_probs.push_back(log_probs[row]);
      scores[pair].log_prob += log_probs[row];
    }
  }
  return scores;
}

}  // namespace nmt
