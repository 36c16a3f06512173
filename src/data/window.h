#pragma once

#include "nmt/config/specs.h"
#include "nmt/data/batch.h"
#include "nmt/data/corpus.h"
#include "nmt/data/loader_state.h"
#include "nmt/text/vocabulary.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace nmt {

/// An encoded pair.
struct EncodedPair {
  std::int64_t line;
  Ids source, target;
};

/// Pairs that are sorted by length together.
struct Window {
  std::vector<EncodedPair> pairs;  ///< in the pass's order, without those dropped
  std::int64_t end = 0;            ///< place in the order after its last
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
  /// The pair of a line; false (and counted) when it is dropped.
  bool encode(std::int64_t line, EncodedPair& pair, DropCounts& drops) const;
  /// Encodes from order[begin] on, as many pairs as fill maxi_batch batches or as there are. It stops early, with
  /// what it has, when `stop` says so.
  Window window(std::span<const std::uint32_t> order, std::int64_t begin, const std::function<bool()>& stop) const;
  /// Whether `sentences` of so many steps (with </s>) make a batch within the limits.
  bool fits(std::int64_t sentences, std::int64_t source_steps, std::int64_t target_steps) const;
  /// Cuts a window into batches of pairs of like length: indices into window.pairs.
  std::vector<std::vector<std::size_t>> cut(const Window& window) const;
  /// What TrainingData::largest_batches() says, for these lines.
  std::vector<Batch> largest(std::span<const std::uint32_t> lines) const;
};

}  // namespace nmt
