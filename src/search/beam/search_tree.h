#pragma once

#include "search/beam/beam_search.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nmt {

// Parts shared by the searches on host and device.

/// Tokens that are never produced: <s>, and <unk> unless allowed.
std::vector<std::int32_t> skipped_tokens(const SearchOptions& options);
/// Number of leading tokens of a source that are its context.
std::size_t context_of(const SearchOptions& options, std::size_t sentence);
/// Maximum output length in tokens, without </s>.
int longest_output(const SearchOptions& options, std::size_t source_tokens);

// Throw ScoreNotFinite.
[[noreturn]] void fail_score(float sum, std::int32_t token);
[[noreturn]] void fail_dead_end(int step);

/// The attention of rows, [S] each, in slots that are freed when no node uses them.
class AttentionSlots {
 public:
  /// A slot with one user.
  std::int32_t add(std::span<const float> values);
  void add_user(std::int32_t slot) { ++slots_[slot].users; }
  void drop(std::int32_t slot);
  const float* operator[](std::int32_t slot) const { return slots_[slot].values.data(); }
  /// Floats in slots, now and at most so far.
  std::size_t size() const { return size_; }
  std::size_t peak() const { return peak_; }

 private:
  struct Slot {
    std::vector<float> values;
    int users = 0;
  };
  std::vector<Slot> slots_;
  std::vector<std::int32_t> free_;
  std::size_t size_ = 0, peak_ = 0;
};

/// All hypotheses of a search: a tree of tokens, and the finished hypotheses.
struct SearchTree {
  /// One token of a hypothesis; following the parents gives all its tokens.
  struct Node {
    std::int32_t parent;  // -1: the empty hypothesis
    std::int32_t token;
    float log_prob;          // of the token
    float sum;               // of all tokens up to this one
    std::int32_t attention;  // slot of its [S], -1 when not kept
    int users = 0;           // of attention: children, a live row, a finished hypothesis
  };
  struct Finished {
    int sentence;
    std::int32_t node;
    int tokens;  // with </s>
    float score;
  };
  std::vector<Node> nodes;
  AttentionSlots attention;
  std::vector<Finished> finished;  // in the order of finishing

  /// Adds a node with one user, which is its row or the finished hypothesis. It takes over one user
  /// of the slot.
  std::int32_t add(std::int32_t parent, std::int32_t token, float log_prob, float sum,
                   std::int32_t slot);
  /// Takes a user from a node. Attention without users is freed, from the node towards the root.
  void drop(std::int32_t node);

  float sum_of(std::int32_t node) const { return node < 0 ? 0.0f : nodes[node].sum; }
  /// The finished hypotheses of each sentence, ranked. Frees the attention of the tree.
  std::vector<SentenceResult> collect(std::span<const std::vector<std::int32_t>> sources,
                                      const SearchOptions& options);

 private:
  Hypothesis read(const Finished& whole, std::size_t source_tokens, bool want_attention) const;
};

}  // namespace nmt
