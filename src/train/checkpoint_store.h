#pragma once

#include "tensor/tensor.h"

#include <optional>
#include <string>
#include <vector>

namespace nmt::train {

struct NamedTensor {
  std::string name;
  Tensor tensor;  ///< in the host's memory; shares storage: loading writes into it
};

/// One checkpoint: the weights that translate, and what resuming needs beside them.
struct Checkpoint {
  std::int64_t update = 0;
  std::vector<NamedTensor> weights, state;
  std::string training_state;  ///< TrainingState as JSON
};

/// Keeps checkpoints; each save is one atomic step. Implemented over a model directory.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;
  /// Errors (failed): no room, cannot write; the older checkpoints are whole then.
  virtual void save(const Checkpoint& checkpoint, bool best) = 0;
  /// The training state of the newest checkpoint; none when there is no checkpoint.
  virtual std::optional<std::string> newest() = 0;
  /// Fills the tensors named in `into` from the newest checkpoint. Errors (data): a tensor is
  /// missing or of another shape.
  virtual void load(Checkpoint& into) = 0;
};

}  // namespace nmt::train
