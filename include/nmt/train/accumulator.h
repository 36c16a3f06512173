#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "nmt/data/batch.h"
#include "nmt/model/model.h"

namespace nmt::train {

/// Gradients of the batches of an update. A batch for which memory does not suffice is cut in halves, and those again: their gradients
/// sum to the whole's (dropout draws other masks). What was too large once is cut at once from then on.
class Accumulator {
 public:
  /// `clear` sets all gradients to zero; `told` is called at the first batch that is cut.
  Accumulator(Model& model, std::function<void()> clear, std::function<void(const Batch&)> told)
      : model_(model), clear_(std::move(clear)), told_(std::move(told)) {}

  struct Piece {
    Batch batch;
    TrainPass pass;
    int halvings = 0;  ///< how often it was cut
  };
  /// Gradients must be zero. When memory runs out within a pass they hold a part of it, so that all pieces are done again.
  /// Batches without sentences are left out. Errors (memory): a single pair does not fit.
  BatchLoss add(std::vector<Piece> pieces);

 private:
  void cut(std::vector<Piece>& pieces, std::size_t at);

  Model& model_;
  std::function<void()> clear_;
  std::function<void(const Batch&)> told_;
  std::int64_t most_ = std::numeric_limits<std::int64_t>::max();  // padded tokens
  bool cut_before_ = false;
};

}  // namespace nmt::train
