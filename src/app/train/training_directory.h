#pragma once

#include "app/train/directory_store.h"
#include "config/specs.h"
#include "train/parallel/communicator.h"
#include "train/parallel/shared.h"
#include "train/training_state.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nmt::app {

/// The model directory of a training. On several ranks the first alone looks at it and writes
/// there, and tells the others.
class TrainingDirectory {
 public:
  /// Looks only. Errors: as DirectoryStore.
  TrainingDirectory(const TrainSpec& spec, train::Communicator& ranks);
  TrainingDirectory(const TrainingDirectory&) = delete;

  const std::string& path() const { return path_; }
  /// The same on all ranks.
  train::CheckpointStore& store();
  /// What the newest checkpoint says of the training so far; none in a new directory. Error (data):
  /// as TrainingState::from_json.
  std::optional<train::TrainingState> training_so_far();

  // On the first rank alone:
  /// The vocabularies of the model that is there.
  VocabularyPair vocabularies() const { return own_->vocabularies(); }
  /// Whether these files hold them: one file for both sides, or one for each.
  bool has_vocabularies(const std::vector<std::string>& files) const;
  /// From here on the directory is written: goes on with the model that is there, or begins one of
  /// so many weights. Errors: as DirectoryStore::go_on and create.
  void go_on() { own_->go_on(); }
  void create(const ModelSpec& model, const TrainSpec& spec, const VocabularyPair& vocabularies,
              std::int64_t weights);

 private:
  std::string path_;
  train::Communicator& ranks_;
  std::optional<DirectoryStore> own_;  // the first rank's
  train::SharedStore shared_;
};

}  // namespace nmt::app
