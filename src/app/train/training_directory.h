#pragma once

#include "app/train/directory/directory_store.h"
#include "config/specs.h"
#include "train/parallel/communicator.h"
#include "train/parallel/shared.h"
#include "train/training_state.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nmt::app {

/// The model directory of a training. With several ranks, only the first reads and writes it, and
/// sends the contents to the others.
class TrainingDirectory {
 public:
  /// Only reads. `start_anew`: as TrainingSpec. Errors: as DirectoryStore.
  TrainingDirectory(const TrainSpec& spec, const std::string& start_anew,
                    train::Communicator& ranks);
  TrainingDirectory(const TrainingDirectory&) = delete;

  const std::string& path() const { return path_; }
  /// The store, for all ranks.
  train::CheckpointStore& store();
  /// The training state in the newest checkpoint; none in a new directory. Error (data): as
  /// TrainingState::from_json.
  std::optional<train::TrainingState> training_so_far();

  // On the first rank only:
  /// The vocabularies of the existing model.
  VocabularyPair vocabularies() const { return own_->vocabularies(); }
  /// Start writing to the directory: resume() continues with the existing model; create() starts a
  /// new one with `weights` weights. Errors: as DirectoryStore::resume and create.
  void resume() { own_->resume(); }
  void create(const ModelSpec& model, const TrainSpec& spec, const VocabularyPair& vocabularies,
              std::int64_t weights);

 private:
  std::string path_;
  train::Communicator& ranks_;
  std::optional<DirectoryStore> own_;  // the first rank's
  train::SharedStore shared_;
};

}  // namespace nmt::app
