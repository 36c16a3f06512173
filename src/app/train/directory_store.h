#pragma once

#include "config/specs.h"
#include "model/directory/model_directory.h"
#include "train/checkpoint_store.h"

#include <optional>
#include <string>

namespace nmt::app {

/// The trainer's view of a model directory, and the only one that writes there: it holds a lock
/// while it lives.
class DirectoryStore : public train::CheckpointStore {
 public:
  /// Looks only, and with `overwrite` not at a model that is there; nothing is written before
  /// create() or go_on(). Errors (usage): the path is a file, or a folder with anything but a model
  /// in it.
  DirectoryStore(std::string path, int keep_last, int keep_best, bool overwrite);
  ~DirectoryStore() override;
  DirectoryStore(const DirectoryStore&) = delete;

  /// Begins a model; one that is there is lost. `bytes`: of a checkpoint; `most`: checkpoints that
  /// the training saves at most. Warns where there will be no room for all that are to be kept.
  /// Errors (failed): no room for two; (usage): another process trains there.
  void create(const ModelSpec& spec, const VocabularyPair& vocabularies, std::int64_t bytes,
              double most);
  /// Goes on with the model that is there. Errors (usage): another process trains there.
  void go_on();
  VocabularyPair vocabularies() const { return directory_->load_vocabularies(); }

  void save(const train::Checkpoint& checkpoint, bool best) override;
  std::optional<std::string> newest() override;
  void load(train::Checkpoint& into) override;

 private:
  void lock();
  std::string path_;
  int keep_last_, keep_best_, lock_ = -1;
  std::optional<ModelDirectory> directory_;
};

}  // namespace nmt::app
