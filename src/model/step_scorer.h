#pragma once

#include "core/error.h"
#include "tensor/context.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nmt {

/// For each sentence of a batch the tokens that it may go on with, ascending
/// (search/beam/shortlist.h).
using Candidates = std::vector<std::vector<std::int32_t>>;

/// What a step says of its n hypotheses as a whole. Valid until the next advance().
struct DecodingStep {
  int rows = 0;   ///< n
  int block = 0;  ///< rows that score() takes at a time, at most
  const float* attention =
      nullptr;  ///< [n,S] mean over heads, in the host's memory, or null when not asked for
  int source_steps = 0;  ///< S of `attention`, the longest source of the batch with its </s>
};

/// Next-token scores of m rows of a step: log p(v | r-th of them) = logits[r * vocabulary + v] -
/// log_normalizer[r]. Kept apart so that no pass over [m,V] is spent on the subtraction. Where a
/// decoding is restricted, column j is the sentence's candidate number j; columns without one are
/// -infinity. Valid until the next score() or advance().
struct NextTokens {
  int rows = 0;  ///< m
  int vocabulary = 0;
  const float* logits = nullptr;          ///< [m,V]
  const float* log_normalizer = nullptr;  ///< [m]
  const Context* device = nullptr;        ///< whose memory the two lie in; null: the host's
  const float* block_maxima =
      nullptr;  ///< [m, kernels::top_k_blocks(V)], or null: for the search of the best on the host
};

/// Hypotheses of a step, named in a device's memory: i32 [n] each. The same memory may name those
/// of every step.
struct RowsOnDevice {
  Tensor parents, tokens;  ///< as of Decoding::advance()
  Tensor sentences;        ///< which of the batch each belongs to
};

/// One batch of sentences being decoded. At first hypothesis i is the empty one of sentence i.
class Decoding {
 public:
  virtual ~Decoding() = default;
  /// New hypothesis i extends hypothesis parents[i] of the step before by tokens[i] (at the first
  /// call: parents[i] is a sentence and tokens[i] is <s>). Hypotheses not named are dropped; those
  /// of a finished sentence thus leave the batch.
  virtual DecodingStep advance(std::span<const std::int32_t> parents,
                               std::span<const std::int32_t> tokens) = 0;
  /// Where rows may be named in a device's memory: that device; null: nowhere.
  virtual const Context* device() const { return nullptr; }
  /// advance() for such rows, at every step of a decoding or at none: the host does not know them,
  /// copies nothing and waits for nothing, so all steps of equally many rows are the same work.
  /// Rows that nobody wants must name existing ones too.
  virtual DecodingStep advance_on_device(const RowsOnDevice&) {
    NMT_FAIL("this scorer's rows are named on the host");
  }
  /// Scores of rows [first, first + count) of the last step, count at most its `block`: the scores
  /// of all hypotheses over the whole vocabulary are never held at once.
  virtual NextTokens score(int first, int count) = 0;
  /// From the next step on every sentence has its candidates alone, which are all that score()
  /// gives and normalizes over; as many columns as the longest list. Error (usage): a scorer that
  /// cannot.
  virtual void restrict_to(const Candidates&) {
    fail(ExitStatus::usage, "shortlist: this model cannot be restricted to one");
  }
};

/// Calls use(first, scores) for all rows of the step, block after block.
template <class Use>
void for_each_block(Decoding& decoding, const DecodingStep& step, Use&& use) {
  for (int first = 0; first < step.rows; first += step.block)
    use(first, decoding.score(first, std::min(step.block, step.rows - first)));
}

/// All that search knows of a model (or of an ensemble): encode a batch of sources, then score step
/// by step.
class StepScorer {
 public:
  virtual ~StepScorer() = default;
  virtual int vocabulary() const = 0;
  /// Sources are ids without </s>; the model adds it.
  virtual std::unique_ptr<Decoding> begin(std::span<const std::vector<std::int32_t>> sources,
                                          bool want_attention) = 0;
  /// The same with the line that each source was cut from, for scorers that cut it by a vocabulary
  /// of their own.
  virtual std::unique_ptr<Decoding> begin(std::span<const std::vector<std::int32_t>> sources,
                                          std::span<const std::string>, bool want_attention) {
    return begin(sources, want_attention);
  }
};

}  // namespace nmt
