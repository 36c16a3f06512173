#pragma once

#include "data/batch.h"
#include "model/trainable.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace nmt::train {

/// Accumulates the gradients of the batches of an update. A batch that runs out of memory is split
/// recursively into halves, whose gradients sum to those of the batch, with the same dropout.
/// Batches of a size that failed before are split right away.
class Accumulator {
 public:
  /// `losses`: the sums of Trainable::accumulate_gradients(). `clear` sets all gradients and the
  /// losses to zero; `on_split` is called when a batch is split for the first time.
  Accumulator(Trainable& model, Tensor losses, std::function<void()> clear,
              std::function<void(const Batch&)> on_split)
      : model_(model),
        losses_(std::move(losses)),
        clear_(std::move(clear)),
        on_split_(std::move(on_split)) {}

  struct Piece {
    Batch batch;
    TrainPass pass;
  };
  /// Returns the number of target tokens. Losses must be zero, and gradients as Optimizer::update()
  /// leaves them. If memory runs out during a pass, they contain a partial sum, so all pieces are
  /// recomputed. Batches without sentences are skipped. Errors (memory): a single pair does not
  /// fit. `listener` observes the last backward pass (Trainable::Listener); if memory runs out in
  /// it, another one after `clear`.
  std::int64_t add(std::vector<Piece> pieces, const Trainable::Listener& listener = {});

 private:
  void cut(std::vector<Piece>& pieces, std::size_t at);

  Trainable& model_;
  Tensor losses_;
  std::function<void()> clear_;
  std::function<void(const Batch&)> on_split_;
  std::int64_t max_tokens_ = std::numeric_limits<std::int64_t>::max();  // padded tokens
  bool has_split_ = false;
};

}  // namespace nmt::train
