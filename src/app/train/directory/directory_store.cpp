#include "app/train/directory/directory_store.h"

#include "app/train/directory/directory_checks.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/files/temporary.h"
#include "core/log.h"
#include "model/directory/stored_weights.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace nmt::app {

namespace fs = std::filesystem;

DirectoryStore::DirectoryStore(std::string path, int keep_last, int keep_best, bool overwrite,
                               const std::string& start_anew)
    : path_(std::move(path)), keep_last_(keep_last), keep_best_(keep_best), overwrite_(overwrite) {
  if (path_.empty()) fail(ExitStatus::usage, "model: no directory given");
  // Whoever puts other files beside a model, such as a report, can still resume its training.
  if (overwrite || !ModelDirectory::is_there(path_)) refuse_foreign(path_);
  std::error_code error;
  fs::exists(path_, error) ? require_writable(path_) : require_creatable(path_);
  if (!overwrite && ModelDirectory::is_there(path_)) directory_ = ModelDirectory::open(path_);
  if (!overwrite && !directory_ && ModelDirectory::has_checkpoints(path_))
    fail(ExitStatus::data, "model: {} has checkpoints but no config.json; restore it, or {}", path_,
         start_anew);
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
  if (lock_ < 0) fail(ExitStatus::usage, "model: {}: {}", path_, std::strerror(errno));
  identity_ = identity_of(path_);
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK)
    fail(ExitStatus::usage, "model: another process is training in {}", path_);
  // Some network file systems have no locks.
  log::warn("model: {} cannot be locked ({}); no other process may train there", path_,
            std::strerror(errno));
}

// What ModelDirectory::create() frees: the checkpoints of the model that is there.
static double old_checkpoint_bytes(const std::string& directory) {
  const fs::path folder = fs::path(directory) / "checkpoints";
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(folder, error))) return 0;  // perhaps on another disk
  double bytes = 0;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) bytes += static_cast<double>(entry->file_size(ignored));
  }
  return bytes;
}

void DirectoryStore::create(const ModelSpec& spec, const VocabularyPair& vocabularies,
                            std::int64_t bytes, double max_checkpoints) {
  make_directories(path_);
  require_writable(path_);
  lock();
  if (!overwrite_ && ModelDirectory::has_checkpoints(path_))
    fail(ExitStatus::usage,
         "model: another process has trained a model in {} meanwhile; run the same command again "
         "to resume it, or name another directory",
         path_);
  remove_temporaries(path_);
  const double room = static_cast<double>(free_bytes(path_)) + old_checkpoint_bytes(path_),
               each = static_cast<double>(bytes),
               kept = std::min(max_checkpoints, 1.0 * keep_last_ + keep_best_);
  if (room < 2 * each)
    fail(ExitStatus::failed,
         "model: two checkpoints, the minimum, need {:.1f} MB in {}, which has {:.1f} MB "
         "free",
         2e-6 * each, path_, 1e-6 * room);
  if (room < (kept + 1) * each)
    log::warn(
        "model: {} checkpoints and the next one will need {:.1f} MB in {}, which has "
        "{:.1f} MB free; lower keep-last or free disk space",
        kept, 1e-6 * (kept + 1) * each, path_, 1e-6 * room);
  for (const char* name : training_records) fs::remove(fs::path(path_) / name);
  directory_ = ModelDirectory::create(path_, spec, *vocabularies.source, *vocabularies.target);
}

void DirectoryStore::resume() {
  require_writable(path_);
  if (const std::string folder = path_ + "/checkpoints"; fs::exists(folder))
    require_writable(folder);
  lock();
  if (directory_->latest_name() != seen_)
    fail(ExitStatus::usage,
         "model: another process has trained in {} meanwhile; run the same command again to resume "
         "its training",
         path_);
  directory_->clean_up();
}

void DirectoryStore::save(const train::Checkpoint& checkpoint, bool best) {
  if (const auto now = identity_of(path_); now && now != identity_)
    fail(ExitStatus::failed,
         "model: {} was moved or removed during the training: another directory has its path; this "
         "checkpoint is not saved",
         path_);
  CheckpointContents stored;
  stored.updates = checkpoint.update;
  for (const train::NamedTensor& t : checkpoint.weights)
    stored.model.emplace_back(t.name, t.tensor);
  for (const train::NamedTensor& t : checkpoint.state) stored.state.emplace_back(t.name, t.tensor);
  stored.info = checkpoint.training_state;
  directory_->save(stored, best, keep_last_, keep_best_);
}

// Reads the latest checkpoint. Where it is damaged, the error names one that is not.
template <class Read>
auto DirectoryStore::read_latest(Read read) {
  using Result = std::optional<decltype(read(std::declval<const StoredCheckpoint&>()))>;
  try {
    const std::optional<StoredCheckpoint> latest = directory_->latest();
    return latest ? Result(read(*latest)) : Result();
  } catch (const Error& error) {
    if (error.status() != ExitStatus::data) throw;
    const std::string damaged = directory_->latest_name();
    const auto sound = newest_sound(std::strtoll(damaged.c_str(), nullptr, 10));
    if (damaged.empty() || !sound) throw;
    std::error_code none;
    const bool is_best =
        std::filesystem::read_symlink(path_ + "/best", none).filename().string() == damaged;
    fail(ExitStatus::data,
         "{}; checkpoint {} is intact: remove {}/checkpoints/{} and {}/latest{}, and the training "
         "goes on from there",
         error.what(), *sound, path_, damaged, path_,
         is_best ? fmt::format(" and {}/best", path_) : "");
  }
}

std::optional<std::int64_t> DirectoryStore::newest_sound(std::int64_t before) const {
  const std::vector<std::int64_t> all = directory_->checkpoints();
  for (auto updates = all.rbegin(); updates != all.rend(); ++updates) {
    if (*updates >= before) continue;
    try {
      const StoredCheckpoint checkpoint = directory_->checkpoint(*updates);
      checkpoint.open_model();
      checkpoint.open_state();
      checkpoint.read_info();
      return *updates;
    } catch (const Error&) {
      continue;
    }
  }
  return std::nullopt;
}

bool DirectoryStore::discard_newest() {
  const std::optional<StoredCheckpoint> latest = directory_->latest();
  const auto before = latest ? newest_sound(latest->updates()) : std::nullopt;
  if (before) directory_->return_to(*before);
  return before.has_value();
}

std::optional<std::string> DirectoryStore::newest() {
  if (!directory_) return std::nullopt;
  seen_ = directory_->latest_name();
  return read_latest([](const StoredCheckpoint& latest) { return latest.read_info(); });
}

void DirectoryStore::load(train::Checkpoint& into) {
  const auto fill = [](const safetensors::File& file, std::vector<train::NamedTensor>& tensors) {
    for (train::NamedTensor& t : tensors) {
      const safetensors::View& view =
          file.require(t.name, safetensors::FileDtype::f32, t.tensor.shape());
      std::memcpy(t.tensor.f32(), view.data, view.bytes());
    }
  };
  const auto loaded = read_latest([&](const StoredCheckpoint& latest) {
    fill(latest.open_model(), into.weights);
    fill(latest.open_state(), into.state);
    return true;
  });
  NMT_CHECK(loaded, "{}: there is no checkpoint", path_);
}

}  // namespace nmt::app
