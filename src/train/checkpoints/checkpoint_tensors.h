#pragma once

#include "model/trainable.h"
#include "tensor/arena.h"
#include "train/checkpoints/checkpoint_store.h"
#include "train/optimization/optimizer.h"
#include "train/validator.h"

#include <cstdint>
#include <functional>

namespace nmt::train {

/// The tensors of a checkpoint: published weights and state of the optimizer, and the state of the
/// model that the next batch depends on.
class CheckpointTensors {
 public:
  /// Model and optimizer must outlive it.
  CheckpointTensors(Trainable& model, Optimizer& optimizer)
      : model_(model), optimizer_(optimizer) {}

  /// A checkpoint of this update: the tensors themselves in host memory, otherwise new ones of
  /// their shapes. `with_batches`: with the state of the model.
  Checkpoint allocate(Arena& host, std::int64_t update, bool with_batches = true);
  void download(Checkpoint& checkpoint);  ///< from the device
  void upload(Checkpoint& checkpoint);    ///< to the device
  /// Copies the published weights to a model for validation.
  CopyWeights copy_weights();

 private:
  void exchange(Checkpoint& checkpoint,
                const std::function<void(Tensor& host, Tensor& trained)>& copy);

  Trainable& model_;
  Optimizer& optimizer_;
};

}  // namespace nmt::train
