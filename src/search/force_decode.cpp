#include "nmt/search/force_decode.h"

#include "nmt/core/error.h"

#include <cmath>
#include <memory>

namespace nmt {

std::vector<ForcedScore> force_decode(Scorer& scorer, std::span<const std::vector<std::int32_t>> sources,
                                      std::span<const std::vector<std::int32_t>> targets, bool want_attention,
                                      std::int32_t bos, std::int32_t eos) {
  NMT_CHECK(sources.size() == targets.size(), "{} sources and {} targets to score", sources.size(), targets.size());
  const int vocabulary = scorer.vocabulary();
  std::vector<ForcedScore> scores(sources.size());
  if (sources.empty()) return scores;
  std::vector<std::int32_t> parents, tokens, pairs;  // of the live rows
  for (std::size_t i = 0; i < sources.size(); ++i) {
    for (const std::int32_t id : targets[i])
      NMT_CHECK(id >= 0 && id < vocabulary, "target id {} is outside the vocabulary of {}", id, vocabulary);
    parents.push_back(static_cast<std::int32_t>(i));
    pairs.push_back(static_cast<std::int32_t>(i));
    tokens.push_back(bos);
    scores[i].log_probs.reserve(targets[i].size() + 1);
  }
  std::vector<float> log_probs;
  const std::unique_ptr<Decoding> decoding = scorer.begin(sources, want_attention);
  for (std::size_t step = 0; !pairs.empty(); ++step) {
    const DecodingStep next = decoding->advance(parents, tokens);
    NMT_CHECK(next.rows == static_cast<int>(pairs.size()), "the scorer gave {} rows for {} pairs", next.rows,
              pairs.size());
    NMT_CHECK(!want_attention || next.attention, "the scorer gave no attention, which was asked for");
    log_probs.resize(pairs.size());
    for_each_block(*decoding, next, [&](int first, const NextTokens& block) {
      NMT_CHECK(block.vocabulary == vocabulary, "the scorer scored {} tokens of {}", block.vocabulary, vocabulary);
      for (int row = 0; row < block.rows; ++row) {
        const std::vector<std::int32_t>& target = targets[pairs[first + row]];
        const std::int32_t token = step == target.size() ? eos : target[step];
        log_probs[first + row] = block.logits[std::int64_t{row} * vocabulary + token] - block.log_normalizer[row];
      }
    });
    std::size_t live = 0;
    for (std::size_t row = 0; row < pairs.size(); ++row) {
      const std::int32_t pair = pairs[row];
      ForcedScore& score = scores[pair];
      const bool last = step == targets[pair].size();
      const std::int32_t token = last ? eos : targets[pair][step];
      const float log_prob = log_probs[row];
      NMT_CHECK(!std::isnan(log_prob) && log_prob < 1e30f,
                "the model's score is {} for token {} of pair {} of the batch", log_prob, token, pair);
      score.log_probs.push_back(log_prob);
      score.log_prob += log_prob;
      if (want_attention) {
        const float* from = next.attention + row * next.source_steps;
        score.attention.insert(score.attention.end(), from, from + sources[pair].size() + 1);
      }
      if (last) continue;
      parents[live] = static_cast<std::int32_t>(row);
      tokens[live] = token;
      pairs[live++] = pair;
    }
    parents.resize(live);
    tokens.resize(live);
    pairs.resize(live);
  }
  return scores;
}

}  // namespace nmt
