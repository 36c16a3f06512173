#pragma once

#include "config/specs.h"
#include "core/files/mapped_file.h"
#include "nmt/vocabulary.h"
#include "tensor/safetensors.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// Source and target vocabulary; the same object if joint.
struct VocabularyPair {
  std::shared_ptr<const Vocabulary> source, target;
};

/// A checkpoint to be saved. The tensors' memory belongs to the caller.
struct CheckpointContents {
  std::int64_t updates = 0;
  /// The weights for translation (the moving average, if any).
  std::vector<safetensors::View> model;
  std::vector<safetensors::View> state;  ///< additional tensors for resuming
  std::string info = "{}";               ///< JSON: schedule, generator, position, ...
};

/// A checkpoint in a model directory. Files are checked against the sizes and checksums of the
/// manifest when opened.
class StoredCheckpoint {
 public:
  /// Errors (data): missing or invalid manifest.
  explicit StoredCheckpoint(const std::string& folder);
  const std::string& folder() const { return folder_; }
  std::int64_t updates() const { return updates_; }
  /// Whether it was saved as the best so far.
  bool is_best() const { return best_; }
  /// CRC-32 of the file of weights, as of the manifest. Error (data): the manifest does not list
  /// it.
  std::uint32_t model_crc32() const;

  // Errors (data): missing, truncated, changed, not of their format; name the file and what is
  // wrong.
  safetensors::File open_model() const;
  safetensors::File open_state() const;
  std::string read_info() const;

 private:
  struct FileRecord {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint32_t crc32 = 0;
  };
  const FileRecord& record(const std::string& name) const;
  /// The file in memory, which a training that removes the checkpoint meanwhile does not change.
  MappedFile verified(const std::string& name) const;
  std::string folder_;
  std::int64_t updates_ = 0;
  bool best_ = false;
  std::vector<FileRecord> files_;
};

/// A model directory:
///   config.json            format, version, sizes and CRC-32 of the vocabularies, ModelSpec;
///                          precision of the weights unless float32
///   vocab.spm              or src.spm and trg.spm
///   shortlist.bin          the target pieces that --shortlist selects; in converted models alone
///   checkpoints/<updates>/ model.safetensors, state.safetensors, state.json, manifest.json (sizes,
///   CRC-32)
///   latest, best           symbolic links to checkpoints
/// A checkpoint is written to a temporary directory, synced and renamed; then the links are
/// replaced by rename(). Older checkpoints are removed only after that, so the links always point
/// to complete checkpoints, whenever the process is killed. Copies that follow links (scp -r, cp
/// -L) can be read too: a directory in the place of a link is the checkpoint itself.
class ModelDirectory {
 public:
  /// What a model directory may have.
  static constexpr std::array contents = {"config.json", "latest",  "best",    "checkpoints",
                                          "vocab.spm",   "src.spm", "trg.spm", "shortlist.bin"};
  /// Whether the directory has a model: config.json exists.
  static bool is_there(const std::string& path);
  /// The task of the model; none where config.json is missing or damaged.
  static std::optional<Task> task_at(const std::string& path);
  /// Whether the directory has checkpoints, with or without config.json.
  static bool has_checkpoints(const std::string& path);
  /// Creates the directory, or replaces the model of an existing one, removing its checkpoints.
  /// Identical vocabularies are stored once. `weights`: dtype of the matrices in its checkpoints
  /// (stored_weights.h). Errors (failed): cannot be written; the path is a file.
  static ModelDirectory create(const std::string& path, const ModelSpec& spec,
                               const Vocabulary& source, const Vocabulary& target,
                               Dtype weights = Dtype::f32);
  /// Errors: (usage) no such directory, or it has no model; (data) invalid config.json.
  static ModelDirectory open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string shortlist_path() const { return shortlist_path(path_); }
  /// The stored shortlist as in its file; "": there is none. Errors: as read_file.
  std::string shortlist() const;
  static std::string shortlist_path(const std::string& directory) {
    return directory + "/shortlist.bin";
  }
  const ModelSpec& spec() const { return spec_; }
  /// Error (usage): it is no model of one of these tasks.
  void require(std::initializer_list<Task> tasks) const;
  void require(Task task) const { require({task}); }
  int source_size() const { return source_size_; }
  int target_size() const { return target_size_; }
  Dtype weights() const { return weights_; }
  /// Errors (data): missing, not a SentencePiece model, or of a size or checksum other than that in
  /// config.json.
  VocabularyPair load_vocabularies() const;

  /// Saves a checkpoint, makes it `latest`, and `best` if it is; then removes all but the
  /// `keep_last` newest and the last `keep_best` best ones. Checkpoints that a link names are kept.
  /// Errors (failed): disk full or write error, with file and bytes needed; existing checkpoints
  /// stay intact.
  void save(const CheckpointContents& checkpoint, bool is_best, int keep_last, int keep_best);
  /// Removes temporary files of killed processes and the checkpoints newer than latest(), except
  /// best(), and makes a missing `latest` name latest(). Only the training process may call it.
  void clean_up();
  /// Makes latest() the checkpoint after `updates` updates and removes the newer ones, except
  /// best(). Only the training process may call it. Error (usage): as checkpoint().
  void return_to(std::int64_t updates);

  // Nothing if there is no such checkpoint. Errors (data): the target of the link is damaged.
  /// The checkpoint that `latest` names, or the newest where there is no such link.
  std::optional<StoredCheckpoint> latest() const;
  /// The name of its folder in checkpoints/, which is not read; "": there is none, or `latest` is
  /// no link to one.
  std::string latest_name() const;
  std::optional<StoredCheckpoint> best() const { return follow("best"); }
  /// The checkpoint used for translation: best, else latest. Error (data): there is none yet.
  StoredCheckpoint published() const;
  /// Update counts of all checkpoints, ascending.
  std::vector<std::int64_t> checkpoints() const;
  /// The checkpoint after `updates` updates. Error (usage): it does not exist; lists those that do.
  StoredCheckpoint checkpoint(std::int64_t updates) const;

 private:
  ModelDirectory() = default;
  bool is_link(const char* name) const;
  std::optional<StoredCheckpoint> follow(const char* link) const;
  void set_link(const char* link, const std::string& name) const;
  void remove_old(int keep_last, int keep_best) const;
  void remove_newer() const;

  std::string path_;
  ModelSpec spec_;
  int source_size_ = 0, target_size_ = 0;
  Dtype weights_ = Dtype::f32;
  std::map<std::string, std::uint32_t, std::less<>> vocabulary_crc32_;  // by file name
};

}  // namespace nmt
