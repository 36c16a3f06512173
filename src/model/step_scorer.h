#pragma once

#include "core/error.h"
#include "nmt/vocabulary.h"
#include "tensor/context.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nmt {

/// The allowed tokens of each sentence of a batch, ascending (search/beam/shortlist.h).
using Candidates = std::vector<std::vector<std::int32_t>>;

/// A step of n hypotheses. Valid until the next advance().
struct DecodingStep {
  int rows = 0;   ///< n
  int block = 0;  ///< maximum number of rows per call of score()
  /// [n,S] of ModelSpec::alignment_head, in the host's memory, or null when not asked for.
  const float* attention = nullptr;
  int source_steps = 0;  ///< S of `attention`: longest source of the batch, including </s>
};

/// Next-token scores of m rows of a step: log p(v | row r) = logits[r * vocabulary + v] -
/// log_normalizer[r]. Kept separate to save a pass over [m,V]. In a restricted decoding, column j
/// is candidate j of the sentence; unused columns are -infinity. Valid until the next score() or
/// advance().
struct NextTokens {
  int rows = 0;  ///< m
  int vocabulary = 0;
  const float* logits = nullptr;          ///< [m,V]
  const float* log_normalizer = nullptr;  ///< [m]; null: left to the caller (score_logits())
  const Context* device = nullptr;        ///< device of the two arrays; null: host memory
  /// [m, kernels::top_k_blocks(V)], or null: for the search of the best on the host.
  const float* block_maxima = nullptr;
};

/// Hypotheses of a step, given in device memory: i32 [n] each. All steps may use the same memory.
struct RowsOnDevice {
  Tensor parents, tokens;  ///< as of Decoding::advance()
  Tensor sentences;        ///< sentence of each hypothesis
};

/// The decoding of a batch of sentences. Initially, hypothesis i is the empty hypothesis of
/// sentence i.
class Decoding {
 public:
  virtual ~Decoding() = default;
  /// New hypothesis i extends hypothesis parents[i] of the previous step by tokens[i] (in the first
  /// call: parents[i] is a sentence and tokens[i] is <s>). Hypotheses that are not named are
  /// dropped; those of a finished sentence thus leave the batch.
  virtual DecodingStep advance(std::span<const std::int32_t> parents,
                               std::span<const std::int32_t> tokens) = 0;
  /// The device for advance_on_device(); null: not supported.
  virtual const Context* device() const { return nullptr; }
  /// advance() for rows in device memory; a decoding uses it for all steps or for none. The host
  /// neither copies nor waits, so steps with equal numbers of rows run identical work. Unused rows
  /// must name existing rows too.
  virtual DecodingStep advance_on_device(const RowsOnDevice&) {
    NMT_FAIL("this scorer's rows are named on the host");
  }
  /// Marks the state after the last step, to which return_to_mark() goes back while the work of the
  /// steps since has not run on the device (tensor/repeat.h). These are an even number of steps on
  /// the device with as many rows as the last two, and leave their states where those of the mark
  /// were. Appends to `key` what tells their work from that of other decodings. False: not
  /// supported, or not in this state.
  virtual bool mark(std::vector<std::int64_t>&) { return false; }
  /// Any number of times. Errors: no mark; OutOfMemory: the memory of the marked state was needed.
  virtual void return_to_mark() { NMT_FAIL("this decoding has no mark"); }
  /// Scores of rows [first, first + count) of the last step; count is at most its `block`, so the
  /// scores of all hypotheses over the whole vocabulary are never stored at once.
  virtual NextTokens score(int first, int count) = 0;
  /// score() for a caller that sums the scores itself: log_normalizer may be null. On a device
  /// only.
  virtual NextTokens score_logits(int first, int count) { return score(first, count); }
  /// From the next step on, restricts every sentence to its candidates: score() returns and
  /// normalizes over only these, with as many columns as the longest list. Error (usage): not
  /// supported by the scorer.
  virtual void restrict_to(const Candidates&) {
    fail(ExitStatus::usage, "shortlist: this model cannot be restricted to one");
  }
};

/// Calls use(first, scores) for all rows of the step, block by block.
template <class Use>
void for_each_block(Decoding& decoding, const DecodingStep& step, Use&& use) {
  for (int first = 0; first < step.rows; first += step.block)
    use(first, decoding.score(first, std::min(step.block, step.rows - first)));
}

/// The interface between search and a model or ensemble: encode a batch of sources, then score step
/// by step.
class StepScorer {
 public:
  virtual ~StepScorer() = default;
  virtual int vocabulary() const = 0;
  /// Sources are ids without </s>; the model adds it.
  virtual std::unique_ptr<Decoding> begin(std::span<const std::vector<std::int32_t>> sources,
                                          bool want_attention) = 0;
  /// The same with the text of each source, for scorers that encode it with their own vocabulary.
  virtual std::unique_ptr<Decoding> begin(std::span<const std::vector<std::int32_t>> sources,
                                          std::span<const std::string>, bool want_attention) {
    return begin(sources, want_attention);
  }
};

/// Error (failed): the scorer has another number of output tokens than its target vocabulary.
inline void require_same_size(const StepScorer& scorer, const Vocabulary& target) {
  NMT_CHECK(scorer.vocabulary() == target.size(),
            "the model has {} output tokens, but its target vocabulary has {}", scorer.vocabulary(),
            target.size());
}

}  // namespace nmt
