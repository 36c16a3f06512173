#pragma once

#include "data/batch.h"
#include "model/model.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace nmt::train {

/// Gradients of the batches of an update. A batch for which memory does not suffice is cut in
/// halves, and those again: their gradients sum to the whole's, dropout included. What was too
/// large once is cut at once from then on.
class Accumulator {
 public:
  /// `losses` f64 [2]: where losses are added up, cross-entropy and smoothed, on the model's
  /// device. `clear` sets all gradients and the losses to zero; `told` is called at the first batch
  /// that is cut.
  Accumulator(Model& model, Tensor losses, std::function<void()> clear,
              std::function<void(const Batch&)> told)
      : model_(model),
        losses_(std::move(losses)),
        clear_(std::move(clear)),
        told_(std::move(told)) {}

  struct Piece {
    Batch batch;
    TrainPass pass;
  };
  /// Returns the number of target tokens. Gradients and losses must be zero. When memory runs out
  /// within a pass they hold a part of it, so that all pieces are done again. Batches without
  /// sentences are left out. Errors (memory): a single pair does not fit. `listener` hears of the
  /// backward pass that is the last one (Model::Listener); when memory runs out, of another, after
  /// `clear`.
  std::int64_t add(std::vector<Piece> pieces, const Model::Listener& listener = {});

 private:
  void cut(std::vector<Piece>& pieces, std::size_t at);

  Model& model_;
  Tensor losses_;
  std::function<void()> clear_;
  std::function<void(const Batch&)> told_;
  std::int64_t most_ = std::numeric_limits<std::int64_t>::max();  // padded tokens
  bool cut_before_ = false;
};

}  // namespace nmt::train
