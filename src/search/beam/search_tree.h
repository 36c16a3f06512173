#pragma once

#include "search/beam/beam_search.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nmt {

// Parts shared by the searches on host and device.

/// Tokens that are never produced: <s>, and <unk> unless allowed.
std::vector<std::int32_t> skipped_tokens(const SearchOptions& options);
/// Maximum output length in tokens, without </s>.
int longest_output(const SearchOptions& options, std::size_t source_tokens);

[[noreturn]] void fail_score(float sum, std::int32_t token, int sentence);
[[noreturn]] void fail_dead_end(int sentence, int step);

/// All hypotheses of a search: a tree of tokens, and the finished hypotheses.
struct SearchTree {
  /// One token of a hypothesis; following the parents gives all its tokens.
  struct Node {
    std::int32_t parent;  // -1: the empty hypothesis
    std::int32_t token;
    float log_prob;          // of the token
    float sum;               // of all tokens up to this one
    std::int64_t attention;  // offset of [S] in `attention`, -1 when not kept
  };
  struct Finished {
    int sentence;
    std::int32_t node;
    int tokens;  // with </s>
    float score;
  };
  std::vector<Node> nodes;
  std::vector<float> attention;
  std::vector<Finished> finished;  // in the order of finishing

  float sum_of(std::int32_t node) const { return node < 0 ? 0.0f : nodes[node].sum; }
  /// The finished hypotheses of each sentence, ranked.
  std::vector<SentenceResult> collect(std::span<const std::vector<std::int32_t>> sources,
                                      const SearchOptions& options);

 private:
  Hypothesis read(const Finished& whole, std::size_t source_tokens, bool want_attention) const;
};

}  // namespace nmt
