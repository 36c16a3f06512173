#pragma once

#include "data/batch.h"

#include <string>
#include <vector>

namespace nmt::train {

/// Where the batches of a training come from: pass after pass over a corpus, without end.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// The next batch; valid until the next call. On one of several ranks: this rank's share of it,
  /// which may have no sentence.
  virtual const Batch& next() = 0;
  /// Passes done with the last batch of next(), with the fraction of the present pass; whole
  /// exactly at a pass's end.
  virtual double epochs() const = 0;
  /// Where the source stands after the last batch, for restore(): one line of text.
  virtual std::string position() const = 0;
  /// Goes on after that position; the batches that follow are those that would have followed.
  virtual void restore(const std::string& position) = 0;
  /// Batches (shares, too) as large as any that next() can give, for the trial before the first
  /// update: at least the longest pair's.
  virtual std::vector<Batch> largest() = 0;
};

}  // namespace nmt::train
