#pragma once

#include "data/batch.h"

#include <string>
#include <vector>

namespace nmt::train {

/// An endless stream of training batches, epoch after epoch.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// The next batch, valid until the next call. With several ranks: this rank's share, which may be
  /// empty.
  virtual const Batch& next() = 0;
  /// Completed epochs after the last batch of next(), plus the fraction of the current one; an
  /// integer exactly at the end of an epoch.
  virtual double epochs() const = 0;
  /// The position after the last batch, as one line of text for restore().
  virtual std::string position() const = 0;
  /// Continues from a position with exactly the batches that would have followed.
  virtual void restore(const std::string& position) = 0;
  /// Batches, or shares, at least as large as any that next() returns, for the dry run before the
  /// first update.
  virtual std::vector<Batch> largest() = 0;
};

}  // namespace nmt::train
