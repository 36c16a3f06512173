#pragma once

#include "config/specs.h"
#include "data/alignment/alignments.h"
#include "data/batch.h"
#include "data/corpus.h"
#include "data/loader_state.h"
#include "nmt/vocabulary.h"
#include "text/noise.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace nmt {

/// All-gather of token ids over the processes: sends `mine`, returns the data of all processes by
/// rank. Collective and blocking: every process must call it equally often.
using Gather = std::function<std::vector<Ids>(const Ids& mine)>;

/// An endless stream of training batches, epoch after epoch in random order. Windows of maxi_batch
/// batches are sorted by length and cut at mini_batch_words padded target tokens (twice as many
/// source tokens) and mini_batch sentences; the batches of a window come in random order. A
/// background thread encodes ahead. Each epoch draws its own noise (TextNoise, BpeDropout). The
/// sequence depends only on the corpus, the vocabularies, the settings and the seed.
class TrainingData {
 public:
  /// Lines in `excluded` (sorted, from 0) are not used. The corpus and the vocabularies must
  /// outlive this object. With a share, every batch is that part of the full batch; positions are
  /// the same for all shares. Processes that share the data each encode a part of the text and
  /// exchange it with `gather`, which next() calls, so all of them must request the same batches.
  /// `context_sentences`: as ModelSpec; excluded lines are part of the context as all others.
  /// With alignments of the corpus, which must outlive this object, batches have BatchLinks.
  /// Errors: (usage) a setting is out of range; (data) no line is left, or there are 2^32 or more.
  TrainingData(const ParallelCorpus& corpus, const Vocabulary& source, const Vocabulary& target,
               const DataSpec& spec, std::span<const std::int64_t> excluded = {},
               const RankSlice& share = {}, Gather gather = {}, const NoiseSpec& noise = {},
               int context_sentences = 0, const Alignments* alignments = nullptr);
  ~TrainingData();
  TrainingData(const TrainingData&) = delete;
  TrainingData& operator=(const TrainingData&) = delete;

  /// The next batch, or this share of it, which may be empty. Its lines are line numbers of the
  /// corpus. Error (data): no pair of a whole epoch can be used.
  Batch next();

  /// The position after the last batch of next().
  const LoaderState& state() const;
  /// Continues from a position, with the same corpus and settings. Error (data), thrown here or by
  /// next(): no such position.
  void restore(const LoaderState& state);

  /// Completed epochs plus the fraction of the current one; an integer after the last batch of an
  /// epoch.
  double epochs() const { return state().epochs; }
  /// Pairs dropped in the current epoch before the window of the last batch; the whole epoch after
  /// its last batch.
  const DropCounts& drops() const;
  /// Number of lines in use.
  std::int64_t pairs() const;
  /// Number of pairs this process has encoded since restore(), if it was called, including
  /// prefetched ones.
  std::int64_t encoded() const;

  /// Batches of <unk> at least as large as any that next() returns: one with the longest pairs, and
  /// one with as many sentences of median length as fit. Used to test the memory before the first
  /// update. The longest pair is searched among the lines with the most bytes.
  std::vector<Batch> largest_batches() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nmt
