#pragma once

#include "config/specs.h"
#include "data/batch.h"
#include "data/corpus.h"
#include "data/loader_state.h"
#include "nmt/vocabulary.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace nmt {

/// How several processes exchange what each has encoded: what this one gives, for what all give, by
/// rank. All call it as often; it waits.
using Gather = std::function<std::vector<Ids>(const Ids& mine)>;

/// The batches of a training: pass after pass over a corpus, without end, each pass in an order of
/// its own. Windows of maxi_batch batches are sorted by length and cut at mini_batch_words padded
/// target tokens (twice as many source tokens) and mini_batch sentences; a window's batches come in
/// random order. A thread encodes ahead. The sequence depends on the corpus, the vocabularies, the
/// settings and the seed alone.
class TrainingData {
 public:
  /// Lines in `excluded` (sorted, from 0) take no part. The corpus and the vocabularies outlive
  /// this object. With a share every batch is that part of it; where the data stand is the same for
  /// all shares. Each of the processes that share encodes its part of the text alone, and gets the
  /// rest by `gather`, which next() calls: all processes must take the same batches. Errors: usage
  /// for a setting out of its range; data when no line is left, or there are 2^32 or more.
  TrainingData(const ParallelCorpus& corpus, const Vocabulary& source, const Vocabulary& target,
               const DataSpec& spec, std::span<const std::int64_t> excluded = {},
               const Share& share = {}, Gather gather = {});
  ~TrainingData();
  TrainingData(const TrainingData&) = delete;
  TrainingData& operator=(const TrainingData&) = delete;

  /// The next batch, or this share of it, which may be empty; its lines are those of the corpus.
  /// Errors (data): no pair of a whole pass can be used.
  Batch next();

  /// Where the last batch of next() has left it.
  const LoaderState& state() const;
  /// Goes on after that state, with the same corpus and settings. Error (data, by this or next()):
  /// no such place.
  void restore(const LoaderState& state);

  /// Passes done, with the fraction of the present one; whole after a pass's last batch.
  double epochs() const { return state().epochs; }
  /// What the present pass has dropped up to the last batch's window; after its last batch: the
  /// whole pass.
  const DropCounts& drops() const;
  /// Lines that take part.
  std::int64_t pairs() const;
  /// Pairs that this process has encoded so far, those ahead of the last batch too.
  std::int64_t encoded() const;

  /// Batches as large as any of next(), filled with <unk>: one of the longest pairs, and one with
  /// as many sentences of usual length as fit. For a trial before the first update. The longest
  /// pair is sought among the longest lines.
  std::vector<Batch> largest_batches() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nmt
