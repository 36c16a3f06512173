#pragma once

#include "config/specs.h"
#include "core/files/file.h"
#include "model/directory/model_directory.h"
#include "train/checkpoints/checkpoint_store.h"

#include <optional>
#include <string>

namespace nmt::app {

/// The CheckpointStore of a model directory. From create() or resume() on, it holds the directory's
/// lock, so it is the only writer where the file system has locks.
class DirectoryStore : public train::CheckpointStore {
 public:
  /// Only reads; nothing is written before create() or resume(). With `overwrite`, an existing
  /// model is ignored. `start_anew`: how to do that, for messages. Errors: (usage) the path is a
  /// file, or a directory with other contents; (data) it has checkpoints without a model.
  DirectoryStore(std::string path, int keep_last, int keep_best, bool overwrite,
                 const std::string& start_anew);
  ~DirectoryStore() override;
  DirectoryStore(const DirectoryStore&) = delete;

  /// Creates a model. With `overwrite`, it replaces an existing one. `bytes`: size of a checkpoint;
  /// `max_checkpoints`: how many the training saves at most. Warns if the disk has too little space
  /// for all that are to be kept. Errors: (failed) not enough space for two; (usage) the directory
  /// cannot be written, another process is training there, or has made a model since the
  /// constructor.
  void create(const ModelSpec& spec, const VocabularyPair& vocabularies, std::int64_t bytes,
              double max_checkpoints);
  /// Continues with the existing model. Errors (usage): the directory cannot be written, or another
  /// process is training there, or has trained since newest().
  void resume();
  VocabularyPair vocabularies() const { return directory_->load_vocabularies(); }

  /// Error (failed): the directory was moved or removed, even if another one has its path now.
  void save(const train::Checkpoint& checkpoint, bool best) override;
  std::optional<std::string> newest() override;
  void load(train::Checkpoint& into) override;
  bool discard_newest() override;

 private:
  void lock();
  template <class Read>
  auto read_latest(Read read);
  /// The updates of the newest undamaged checkpoint of fewer updates.
  std::optional<std::int64_t> newest_sound(std::int64_t before) const;
  std::string path_;
  int keep_last_, keep_best_, lock_ = -1;
  bool overwrite_;
  std::optional<ModelDirectory> directory_;
  std::optional<FileIdentity> identity_;  // of the directory, since lock()
  std::string seen_;                      // the latest checkpoint at newest()
};

}  // namespace nmt::app
