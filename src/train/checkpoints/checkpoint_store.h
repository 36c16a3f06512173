#pragma once

#include "tensor/tensor.h"

#include <optional>
#include <string>
#include <vector>

namespace nmt::train {

struct NamedTensor {
  std::string name;
  Tensor tensor;  ///< in host memory; loading writes into its storage
};

/// A checkpoint: the weights for translation, and the additional state for resuming.
struct Checkpoint {
  std::int64_t update = 0;
  std::vector<NamedTensor> weights, state;
  std::string training_state;  ///< TrainingState as JSON
};

/// Stores checkpoints; save() is atomic. Implemented by a model directory.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;
  /// Errors (failed): disk full or write error; existing checkpoints stay intact.
  virtual void save(const Checkpoint& checkpoint, bool best) = 0;
  /// The training state of the newest checkpoint; nothing if there is none.
  virtual std::optional<std::string> newest() = 0;
  /// Fills the tensors named in `into` from the newest checkpoint. Errors (data): a tensor is
  /// missing or of another shape.
  virtual void load(Checkpoint& into) = 0;
  /// Makes the newest intact checkpoint before newest() the newest, and forgets those after it,
  /// except the best. Returns false, and does nothing, if there is none. Errors (failed): write
  /// error.
  virtual bool discard_newest() = 0;
};

}  // namespace nmt::train
