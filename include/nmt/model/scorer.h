#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace nmt {

/// Next-token scores of n hypotheses: log p(v | row r) = logits[r * vocabulary + v] - log_normalizer[r].
/// Kept apart so that no pass over [n,V] is spent on the subtraction. Valid until the next advance().
struct NextTokens {
  int rows = 0;
  int vocabulary = 0;
  const float* logits = nullptr;          ///< [n,V]
  const float* log_normalizer = nullptr;  ///< [n]
  const float* attention = nullptr;       ///< [n,S] mean over heads, or null when not asked for
  int source_steps = 0;                   ///< S of `attention`, the longest source of the batch with its </s>
};

/// One batch of sentences being decoded. At first hypothesis i is the empty one of sentence i.
class Decoding {
 public:
  virtual ~Decoding() = default;
  /// New hypothesis i extends hypothesis parents[i] of the step before by tokens[i] (at the first call: parents[i] is a
  /// sentence and tokens[i] is <s>). Hypotheses not named are dropped; those of a finished sentence thus leave the batch.
  virtual NextTokens advance(std::span<const std::int32_t> parents, std::span<const std::int32_t> tokens) = 0;
};

/// All that search knows of a model (or of an ensemble): encode a batch of sources, then score step by step.
class Scorer {
 public:
  virtual ~Scorer() = default;
  virtual int vocabulary() const = 0;
  /// Sources are ids without </s>; the model adds it.
  virtual std::unique_ptr<Decoding> begin(std::span<const std::vector<std::int32_t>> sources, bool want_attention) = 0;
};

}  // namespace nmt
