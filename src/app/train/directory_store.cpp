#include "app/train/directory_store.h"

#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "model/directory/stored_weights.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace nmt::app {
namespace {

namespace fs = std::filesystem;
constexpr std::array own_names = {"config.json", "vocab.spm",   "src.spm",
                                  "trg.spm",     "checkpoints", "latest",
                                  "best",        "train.jsonl", "development.json"};

void refuse_foreign(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status))
    fail(ExitStatus::usage, "model: {} is a file, not a model directory", path);
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (std::find(own_names.begin(), own_names.end(), name) == own_names.end() &&
        !is_temporary_name(name))
      fail(ExitStatus::usage,
           "model: the directory {} contains other files ({}); name a new directory", path, name);
  }
  if (error) fail(ExitStatus::usage, "model: {} cannot be read: {}", path, error.message());
}

}  // namespace

DirectoryStore::DirectoryStore(std::string path, int keep_last, int keep_best, bool overwrite)
    : path_(std::move(path)), keep_last_(keep_last), keep_best_(keep_best) {
  if (path_.empty()) fail(ExitStatus::usage, "model: no directory given");
  refuse_foreign(path_);
  if (!overwrite && ModelDirectory::is_there(path_)) directory_ = ModelDirectory::open(path_);
  if (directory_ && directory_->weights() != Dtype::f32)
    fail(ExitStatus::usage,
         "model: {} has {} weights made by nmt-convert; resume the training of the float32 "
         "model",
         path_, precision_name(directory_->weights()));
}

DirectoryStore::~DirectoryStore() {
  if (lock_ >= 0) ::close(lock_);
}

void DirectoryStore::lock() {
  lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    fail(ExitStatus::usage, "model: another process is training in {}", path_);
}

void DirectoryStore::create(const ModelSpec& spec, const VocabularyPair& vocabularies,
                            std::int64_t bytes, double most) {
  make_directories(path_);
  lock();
  remove_temporaries(path_);
  const double room = static_cast<double>(free_bytes(path_)), each = static_cast<double>(bytes),
               kept = std::min(most, 1.0 * keep_last_ + keep_best_);
  if (room < 2 * each)
    fail(ExitStatus::failed,
         "model: two checkpoints, the minimum, need {:.1f} MB in {}, which has {:.1f} MB "
         "free",
         2e-6 * each, path_, 1e-6 * room);
  if (room < (kept + 1) * each)
    log::warn(
        "model: {} checkpoints and the next one will need {:.1f} MB in {}, which has "
        "{:.1f} MB free; lower --keep-last or free disk space",
        kept, 1e-6 * (kept + 1) * each, path_, 1e-6 * room);
  for (const char* name : {"train.jsonl", "development.json"}) fs::remove(fs::path(path_) / name);
  directory_ = ModelDirectory::create(path_, spec, *vocabularies.source, *vocabularies.target);
}

void DirectoryStore::go_on() {
  lock();
  directory_->clean_up();
}

void DirectoryStore::save(const train::Checkpoint& checkpoint, bool best) {
  CheckpointContents stored;
  stored.updates = checkpoint.update;
  for (const train::NamedTensor& t : checkpoint.weights)
    stored.model.emplace_back(t.name, t.tensor);
  for (const train::NamedTensor& t : checkpoint.state) stored.state.emplace_back(t.name, t.tensor);
  stored.info = checkpoint.training_state;
  directory_->save(stored, best, keep_last_, keep_best_);
}

std::optional<std::string> DirectoryStore::newest() {
  if (!directory_) return std::nullopt;
  const std::optional<StoredCheckpoint> latest = directory_->latest();
  return latest ? std::optional(latest->read_info()) : std::nullopt;
}

void DirectoryStore::load(train::Checkpoint& into) {
  const std::optional<StoredCheckpoint> latest = directory_->latest();
  NMT_CHECK(latest, "{}: there is no checkpoint", path_);
  const auto fill = [](const safetensors::File& file, std::vector<train::NamedTensor>& tensors) {
    for (train::NamedTensor& t : tensors) {
      const safetensors::View& view =
          file.require(t.name, safetensors::FileDtype::f32, t.tensor.shape());
      std::memcpy(t.tensor.f32(), view.data, view.bytes());
    }
  };
  fill(latest->open_model(), into.weights);
  fill(latest->open_state(), into.state);
}

}  // namespace nmt::app
