#pragma once

#include "config/specs.h"
#include "nmt/vocabulary.h"
#include "tensor/safetensors.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// Source and target vocabulary; one and the same object when joint.
struct VocabularyPair {
  std::shared_ptr<const Vocabulary> source, target;
};

/// A checkpoint to be saved. The tensors' memory belongs to the caller.
struct CheckpointContents {
  std::int64_t updates = 0;
  std::vector<safetensors::View>
      model;  ///< the weights that translate (the moving average where there is one)
  std::vector<safetensors::View> state;  ///< what resuming needs beside them
  std::string info = "{}";               ///< JSON: schedule, generator, position, ...
};

/// A checkpoint in a model directory. Sizes and checksums are compared with its manifest when a
/// file is opened.
class StoredCheckpoint {
 public:
  /// Errors (data): no sound manifest.
  explicit StoredCheckpoint(const std::string& folder);
  const std::string& folder() const { return folder_; }
  std::int64_t updates() const { return updates_; }
  /// Whether it was saved as the best so far.
  bool is_best() const { return best_; }

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
  std::string verified(const std::string& name) const;
  std::string folder_;
  std::int64_t updates_ = 0;
  bool best_ = false;
  std::vector<FileRecord> files_;
};

/// A model directory:
///   config.json            format, version, sizes of the vocabularies, ModelSpec; precision of the
///   weights, where not float32 vocab.spm              or src.spm and trg.spm
///   checkpoints/<updates>/ model.safetensors, state.safetensors, state.json, manifest.json (sizes,
///   CRC-32) latest, best           symbolic links to checkpoints
/// A checkpoint is written aside, synced and renamed, then the links are swapped by a rename; what
/// is older goes only after that. So whatever kills the process, the links point at whole
/// checkpoints.
class ModelDirectory {
 public:
  /// Whether a model was begun there: it has a config.json.
  static bool is_there(const std::string& path);
  /// Makes the directory, or makes an existing one's model anew: checkpoints of an older model are
  /// removed. Vocabularies with the same bytes are kept once. Errors (failed): cannot be written;
  /// the path is a file. `weights`: the dtype of the matrices in its checkpoints
  /// (stored_weights.h).
  static ModelDirectory create(const std::string& path, const ModelSpec& spec,
                               const Vocabulary& source, const Vocabulary& target,
                               Dtype weights = Dtype::f32);
  /// Errors (usage): no such directory, or no model in it; (data): a config.json that cannot be
  /// understood.
  static ModelDirectory open(const std::string& path);

  const std::string& path() const { return path_; }
  const ModelSpec& spec() const { return spec_; }
  int source_size() const { return source_size_; }
  int target_size() const { return target_size_; }
  Dtype weights() const { return weights_; }
  /// Errors (data): missing, not SentencePiece, or of another size than config.json says.
  VocabularyPair load_vocabularies() const;

  /// Saves a checkpoint, makes it `latest`, and `best` when it is; then removes all but the
  /// `keep_last` newest and the last `keep_best` that were saved as best (what the links name
  /// always stays). Errors (failed): no room or cannot write, with file and bytes needed; what was
  /// there is whole then.
  void save(const CheckpointContents& checkpoint, bool is_best, int keep_last, int keep_best);
  /// Removes what a killed process left half-written. Only the one process that trains may call it.
  void clean_up();

  // None where there is no such checkpoint. Errors (data): the link's target is damaged.
  std::optional<StoredCheckpoint> latest() const { return follow("latest"); }
  std::optional<StoredCheckpoint> best() const { return follow("best"); }
  /// The checkpoint that programs translate with: best, else latest. Error (data): there is none
  /// yet.
  StoredCheckpoint published() const;
  /// Update counts of all checkpoints, ascending.
  std::vector<std::int64_t> checkpoints() const;
  /// The checkpoint of so many updates. Error (usage): there is none; names those there are.
  StoredCheckpoint checkpoint(std::int64_t updates) const;

 private:
  ModelDirectory() = default;
  std::optional<StoredCheckpoint> follow(const char* link) const;
  void point(const char* link, const std::string& name) const;
  void remove_old(int keep_last, int keep_best) const;

  std::string path_;
  ModelSpec spec_;
  int source_size_ = 0, target_size_ = 0;
  Dtype weights_ = Dtype::f32;
};

}  // namespace nmt
