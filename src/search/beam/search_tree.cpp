#include "search/beam/search_tree.h"

#include <algorithm>
#include <utility>

namespace nmt {

std::vector<std::int32_t> skipped_tokens(const SearchOptions& options) {
  std::vector<std::int32_t> tokens{options.bos};
  if (!options.allow_unk) tokens.push_back(options.unk);
  return tokens;
}

std::size_t context_of(const SearchOptions& options, std::size_t sentence) {
  return options.contexts.empty() ? 0 : options.contexts[sentence];
}

int longest_output(const SearchOptions& options, std::size_t source_tokens) {
  const double longest =
      options.max_length_factor * static_cast<double>(source_tokens) + options.max_length_offset;
  return static_cast<int>(std::min(longest, 1e6));
}

void fail_score(float sum, std::int32_t token) {
  throw ScoreNotFinite(fmt::format(
      "the model gave token {} the score {}: a weight or a state is not finite; train with a lower "
      "learn-rate, with layer-normalization, or with another unit",
      token, sum));
}

void fail_dead_end(int step) {
  throw ScoreNotFinite(fmt::format(
      "a sentence has no possible translation: every token after {} has probability 0", step));
}

std::int32_t AttentionSlots::add(std::span<const float> values) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::int32_t slot = free_.back();
  free_.pop_back();
  slots_[slot] = {{values.begin(), values.end()}, 1};
  size_ += values.size();
  peak_ = std::max(peak_, size_);
  return slot;
}

void AttentionSlots::drop(std::int32_t slot) {
  Slot& dropped = slots_[slot];
  if (--dropped.users > 0) return;
  size_ -= dropped.values.size();
  std::vector<float>().swap(dropped.values);
  free_.push_back(slot);
}

std::int32_t SearchTree::add(std::int32_t parent, std::int32_t token, float log_prob, float sum,
                             std::int32_t slot) {
  if (parent >= 0) ++nodes[parent].users;
  nodes.push_back({parent, token, log_prob, sum, slot, 1});
  return static_cast<std::int32_t>(nodes.size()) - 1;
}

void SearchTree::drop(std::int32_t node) {
  for (std::int32_t at = node; at >= 0 && --nodes[at].users == 0; at = nodes[at].parent)
    if (nodes[at].attention >= 0) attention.drop(std::exchange(nodes[at].attention, -1));
}

std::vector<SentenceResult> SearchTree::collect(std::span<const std::vector<std::int32_t>> sources,
                                                const SearchOptions& options) {
  std::vector<SentenceResult> results(sources.size());
  std::stable_sort(finished.begin(), finished.end(), [](const Finished& a, const Finished& b) {
    return a.sentence != b.sentence ? a.sentence < b.sentence : a.score > b.score;
  });
  for (const Finished& whole : finished) {
    std::vector<Hypothesis>& hypotheses = results[whole.sentence].hypotheses;
    if (hypotheses.empty() || options.n_best || options.all_finished)
      hypotheses.push_back(read(whole, sources[whole.sentence].size(), options.want_attention));
    drop(whole.node);
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
      std::copy_n(attention[node.attention], steps, hypothesis.attention.data() + t * steps);
  }
  hypothesis.ids.pop_back();  // </s>
  return hypothesis;
}

}  // namespace nmt
