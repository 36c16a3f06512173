#pragma once

#include "config/specs.h"
#include "data/batch.h"
#include "data/corpus.h"
#include "data/loader_state.h"
#include "nmt/vocabulary.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace nmt {

/// An encoded pair.
struct EncodedPair {
  std::int64_t line = 0;
  std::int32_t source_tokens = 0, target_tokens = 0;  ///< as encoded
  Ids source = {},
      target = {};  ///< as batches take them: shortened; empty where the pair is dropped
};

/// Pairs that are sorted by length together.
struct Window {
  std::vector<EncodedPair> pairs;  ///< in the pass's order, without those dropped
  std::int64_t read = 0;           ///< pairs, with those dropped
  DropCounts drops;
};

/// What turns lines into pairs and pairs into batches.
struct Loading {
  const ParallelCorpus& corpus;
  const Vocabulary& source;
  const Vocabulary& target;
  DataSpec spec;

  /// Errors (usage): a number out of its range.
  void check() const;
  /// The pair of a line.
  EncodedPair encode(std::int64_t line) const;
  /// Whether a pair of so many tokens is dropped.
  bool drops(std::int32_t source_tokens, std::int32_t target_tokens) const;
  /// Takes as many pairs as fill maxi_batch batches, or `most`.
  Window window(const std::function<EncodedPair()>& next, std::int64_t most) const;
  /// Whether `sentences` of so many steps (with </s>) make a batch within the limits.
  bool fits(std::int64_t sentences, std::int64_t source_steps, std::int64_t target_steps) const;
  /// Cuts a window into batches of pairs of like length: indices into window.pairs.
  std::vector<std::vector<std::size_t>> cut(const Window& window) const;
  /// What TrainingData::largest_batches() says, for these lines.
  std::vector<Batch> largest(std::span<const std::uint32_t> lines) const;
};

}  // namespace nmt
