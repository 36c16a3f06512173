#pragma once

#include "model/trainable.h"
#include "train/checkpoints/checkpoint_store.h"
#include "train/parallel/communicator.h"
#include "train/validator.h"

#include <functional>

namespace nmt::train {

/// Checkpoints with several ranks: only rank 0 reads and writes; it broadcasts to the others.
class SharedStore : public CheckpointStore {
 public:
  /// `store`: used on rank 0 only.
  SharedStore(Communicator& communicator, CheckpointStore* store)
      : communicator_(communicator), store_(store) {}
  void save(const Checkpoint& checkpoint, bool best) override;
  std::optional<std::string> newest() override;
  void load(Checkpoint& into) override;
  bool discard_newest() override;

 private:
  Communicator& communicator_;
  CheckpointStore* store_;
};

/// Validation with several ranks: rank 0 validates, the others block and receive the result. When
/// rank 0 is interrupted, all ranks throw Interrupted.
class SharedValidator : public Validator {
 public:
  /// `validator`: used on rank 0 only.
  SharedValidator(Communicator& communicator, Validator* validator)
      : communicator_(communicator), validator_(validator) {}
  ValidationResult validate(const CopyWeights& weights, const Progress& progress) override;
  void dry_run(const CopyWeights& weights) override;

 private:
  void run_on_first(const std::function<void()>& work);
  Communicator& communicator_;
  Validator* validator_;
};

/// Broadcasts rank 0's values of all tensors of the checkpoint.
void broadcast(Communicator& communicator, Checkpoint& checkpoint);

/// Synchronizes the ranks. Ranks with the same kind of processor have bit-identical weights;
/// different processors diverge by rounding, so all take rank 0's values. Error (failed): the norms
/// of their weights differ by more than a thousandth.
void keep_together(Communicator& communicator, Trainable& model, Checkpoint& checkpoint);

}  // namespace nmt::train
