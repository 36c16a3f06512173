#include "search/beam/search_tree.h"

#include "core/error.h"

#include <algorithm>

namespace nmt {

std::vector<std::int32_t> skipped_tokens(const SearchOptions& options) {
  std::vector<std::int32_t> tokens{options.bos};
  if (!options.allow_unk) tokens.push_back(options.unk);
  return tokens;
}

int longest_output(const SearchOptions& options, std::size_t source_tokens) {
  const double longest =
      options.max_length_factor * static_cast<double>(source_tokens) + options.max_length_offset;
  return static_cast<int>(std::min(longest, 1e6));
}

void fail_score(float sum, std::int32_t token, int sentence) {
  NMT_FAIL("the model returned the score {} for token {} of sentence {} of the batch", sum, token,
           sentence);
}

void fail_dead_end(int sentence, int step) {
  NMT_FAIL(
      "sentence {} of the batch has no possible translation: every token after {} has probability "
      "0",
      sentence, step);
}

std::vector<SentenceResult> SearchTree::collect(std::span<const std::vector<std::int32_t>> sources,
                                                const SearchOptions& options) {
  std::vector<SentenceResult> results(sources.size());
  std::stable_sort(finished.begin(), finished.end(), [](const Finished& a, const Finished& b) {
    return a.sentence != b.sentence ? a.sentence < b.sentence : a.score > b.score;
  });
  for (const Finished& whole : finished) {
    std::vector<Hypothesis>& hypotheses = results[whole.sentence].hypotheses;
    if (hypotheses.empty() || options.n_best)
      hypotheses.push_back(read(whole, sources[whole.sentence].size(), options.want_attention));
  }
  return results;
}

Hypothesis SearchTree::read(const Finished& whole, std::size_t source_tokens,
                            bool want_attention) const {
  Hypothesis hypothesis;
  hypothesis.log_prob = nodes[whole.node].sum;
  hypothesis.score = whole.score;
  const std::int64_t steps = static_cast<std::int64_t>(source_tokens) + 1;  // with </s>
  hypothesis.ids.resize(whole.tokens);
  hypothesis.log_probs.resize(whole.tokens);
  if (want_attention) hypothesis.attention.resize(static_cast<std::size_t>(whole.tokens * steps));
  int t = whole.tokens;
  for (std::int32_t at = whole.node; at >= 0; at = nodes[at].parent) {
    const Node& node = nodes[at];
    hypothesis.ids[--t] = node.token;
    hypothesis.log_probs[t] = node.log_prob;
    if (want_attention)
      std::copy_n(attention.data() + node.attention, steps,
                  hypothesis.attention.data() + t * steps);
  }
  hypothesis.ids.pop_back();  // </s>
  return hypothesis;
}

}  // namespace nmt
