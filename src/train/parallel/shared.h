#pragma once

#include "model/model.h"
#include "train/checkpoint_store.h"
#include "train/parallel/communicator.h"
#include "train/validator.h"

namespace nmt::train {

/// Checkpoints of a training on several ranks: rank 0 alone reads and writes, and tells the others.
class SharedStore : public CheckpointStore {
 public:
  /// `store`: rank 0's, looked at by no other.
  SharedStore(Communicator& communicator, CheckpointStore* store)
      : communicator_(communicator), store_(store) {}
  void save(const Checkpoint& checkpoint, bool best) override;
  std::optional<std::string> newest() override;
  void load(Checkpoint& into) override;

 private:
  Communicator& communicator_;
  CheckpointStore* store_;
};

/// Validation by rank 0 alone; the others wait, and know the result.
class SharedValidator : public Validator {
 public:
  /// `validator`: rank 0's, looked at by no other.
  SharedValidator(Communicator& communicator, Validator* validator)
      : communicator_(communicator), validator_(validator) {}
  ValidationResult validate(const CopyWeights& weights, const Progress& progress) override;
  void dry_run(const CopyWeights& weights) override;

 private:
  Communicator& communicator_;
  Validator* validator_;
};

/// Rank 0's values in all tensors of the checkpoint.
void broadcast(Communicator& communicator, Checkpoint& checkpoint);

/// Ranks that compute the same steps hold the same bits; those on processors of different kinds
/// come apart by rounding, and take rank 0's values here. Error (failed): the norms of their
/// weights are more than a thousandth apart.
void keep_together(Communicator& communicator, Model& model, Checkpoint& checkpoint);

}  // namespace nmt::train
