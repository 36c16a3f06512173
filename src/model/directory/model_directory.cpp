#include "model/directory/model_directory.h"

#include "config/fields.h"
#include "config/json.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/files/temporary.h"
#include "core/hash/checksum.h"
#include "core/log.h"
#include "model/directory/checkpoint_folders.h"
#include "model/directory/json_file.h"
#include "model/directory/stored_weights.h"
#include "model/older_settings.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include <unistd.h>

namespace nmt {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// A name for the folder of a new checkpoint.
FolderName free_name(const std::string& path, std::int64_t updates) {
  FolderName name{updates, 0};
  const auto latest = linked_folder(path, "latest"), best = linked_folder(path, "best");
  for (; fs::exists(checkpoints_of(path) + "/" + name.text()); ++name.copy) {
    if (name == latest || name == best) continue;
    remove_folder(path, name);  // of a process that was killed before its links were set
    break;
  }
  return name;
}

// Error (failed): the disk has too little space for the checkpoint in `folder`.
void require_space(const std::string& folder, const CheckpointContents& checkpoint) {
  std::uint64_t bytes = checkpoint.info.size() + 4096;
  for (const auto* tensors : {&checkpoint.model, &checkpoint.state}) {
    for (const safetensors::View& tensor : *tensors) bytes += tensor.bytes() + 256;
  }
  if (const std::int64_t room = free_bytes(fs::path(folder).parent_path());
      room < static_cast<std::int64_t>(bytes))
    fail(ExitStatus::failed, "{}: not enough disk space: {} bytes needed, {} free", folder, bytes,
         room);
}

}  // namespace

bool ModelDirectory::is_there(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path + "/config.json", error);
}

bool ModelDirectory::has_checkpoints(const std::string& path) {
  return !folders_of(path).empty();
}

ModelDirectory ModelDirectory::create(const std::string& path, const ModelSpec& spec,
                                      const Vocabulary& source, const Vocabulary& target,
                                      Dtype weights) {
  make_directories(path);
  // config.json marks the directory as a model, so it is removed first and written last.
  std::error_code error;
  for (const char* name : contents) {
    fs::remove_all(path + "/" + name, error);
    if (error)
      fail(ExitStatus::failed, "{}/{}: cannot be removed: {}", path, name, error.message());
    if (std::strcmp(name, "config.json") == 0) sync_directory(path);
  }
  make_directories(checkpoints_of(path));
  const bool joint = &source == &target || source.bytes() == target.bytes();
  ordered_json vocabularies = ordered_json::object();
  const auto store = [&](const char* name, const Vocabulary& vocabulary) {
    write_file(path + "/" + name, vocabulary.bytes());
    vocabularies[name] = crc32(vocabulary.bytes());
  };
  if (joint) {
    store("vocab.spm", source);
  } else {
    store("src.spm", source);
    store("trg.spm", target);
  }
  ModelDirectory directory;
  directory.path_ = path;
  directory.spec_ = spec;
  directory.source_size_ = source.size();
  directory.target_size_ = target.size();
  directory.weights_ = weights;
  ordered_json config{{"source-vocabulary", source.size()},
                      {"target-vocabulary", target.size()},
                      {"vocabulary-crc32", vocabularies}};
  if (weights != Dtype::f32) config["precision"] = precision_name(weights);
  config["model"] = config::to_json(config::fields(directory.spec_));
  write_file(path + "/config.json", json_text(model_format, model_version, config));
  return directory;
}

ModelDirectory ModelDirectory::open(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (error) fail(ExitStatus::usage, "model: {}: {}", path, error.message());
    fail(ExitStatus::usage, "model: the directory {} does not exist", path);
  }
  if (!fs::is_directory(path, error))
    fail(ExitStatus::usage, "model: {} is a file, not a model directory", path);
  if (!fs::exists(path + "/config.json", error) && error)
    fail(ExitStatus::usage, "model: {}: {}", path, error.message());
  if (!is_there(path))
    fail(ExitStatus::usage, "model: {} contains no model: config.json is missing", path);
  const std::string name = path + "/config.json";
  const JsonFile config(name, model_format, model_version);
  ModelDirectory directory;
  directory.path_ = path;
  constexpr std::int64_t max_words = 100'000'000;
  const auto size_of = [&](const char* key) {
    const std::int64_t size = config.integer(key, 1);
    if (size > max_words) config.wrong(key, "the size of a vocabulary");
    return static_cast<int>(size);
  };
  directory.source_size_ = size_of("source-vocabulary");
  directory.target_size_ = size_of("target-vocabulary");
  if (config.has("precision")) {
    const ordered_json& precision = config.at("precision");
    const auto weights =
        precision.is_string() ? parse_weights(precision.get<std::string>()) : std::nullopt;
    if (!weights) config.wrong("precision", "float32, bfloat16 or int8");
    directory.weights_ = *weights;
  }
  if (config.has("vocabulary-crc32")) {  // not in models of older versions
    const ordered_json& stored = config.at("vocabulary-crc32");
    if (!stored.is_object()) config.wrong("vocabulary-crc32", "a checksum for each vocabulary");
    for (const auto& [file, checksum] : stored.items()) {
      if (!checksum.is_number_unsigned() || checksum.get<std::uint64_t>() > 0xFFFFFFFF)
        config.wrong("vocabulary-crc32", "a checksum for each vocabulary");
      directory.vocabulary_crc32_[file] = checksum.get<std::uint32_t>();
    }
  }
  config::from_json(config.at("model"), config::fields(directory.spec_), name);
  update_older_settings(directory.spec_);
  return directory;
}

std::optional<Task> ModelDirectory::task_at(const std::string& path) {
  try {
    return open(path).spec().task;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void ModelDirectory::require(std::initializer_list<Task> tasks) const {
  std::string expected;
  for (const Task task : tasks) {
    if (spec_.task == task) return;
    expected += (expected.empty() ? "" : " or ") + std::string(model_of(task));
  }
  fail(ExitStatus::usage, "model: {} is {}; expected {}", path_, model_of(spec_.task), expected);
}

VocabularyPair ModelDirectory::load_vocabularies() const {
  const auto load = [this](const char* name, int size) {
    const std::string path = path_ + "/" + name;
    auto vocabulary = std::make_shared<const Vocabulary>(Vocabulary::load(path));
    if (vocabulary->size() != size)
      fail(ExitStatus::data, "{}: has {} pieces, but the model has {}", path, vocabulary->size(),
           size);
    const auto stored = vocabulary_crc32_.find(name);
    if (stored != vocabulary_crc32_.end() && crc32(vocabulary->bytes()) != stored->second)
      fail(ExitStatus::data,
           "{}: has changed since the model was made: its CRC-32 is not that in config.json", path);
    return vocabulary;
  };
  std::error_code error;
  if (fs::exists(path_ + "/vocab.spm", error)) {
    const auto joint = load("vocab.spm", target_size_);
    if (source_size_ != target_size_)
      fail(ExitStatus::data, "{}/config.json: {} source and {} target pieces, but one vocabulary",
           path_, source_size_, target_size_);
    return {joint, joint};
  }
  const bool had_joint = vocabulary_crc32_.contains("vocab.spm");
  for (const char* name : {"src.spm", "trg.spm"}) {
    if (!fs::exists(path_ + "/" + name, error))
      fail(ExitStatus::data, "{}/{}: is missing", path_, had_joint ? "vocab.spm" : name);
  }
  return {load("src.spm", source_size_), load("trg.spm", target_size_)};
}

void ModelDirectory::save(const CheckpointContents& checkpoint, bool is_best, int keep_last,
                          int keep_best) {
  NMT_CHECK(keep_last >= 1 && keep_best >= 0,
            "keep-last {} and keep-best {}: expected keep-last of at least 1", keep_last,
            keep_best);
  if (!is_there(path_))
    fail(ExitStatus::failed,
         "model: {} was moved or removed during the training: config.json is missing; this "
         "checkpoint is not saved",
         path_);
  const std::string all = checkpoints_of(path_);
  make_directories(all);
  const FolderName name = free_name(path_, checkpoint.updates);
  const std::string folder = all + "/" + name.text();
  require_space(folder, checkpoint);
  write_directory(folder, [&](const std::string& aside) {
    ordered_json files = ordered_json::object();
    const auto record = [&](const char* file, const safetensors::Written& written) {
      files[file] = {{"bytes", written.bytes}, {"crc32", written.crc32}};
    };
    const safetensors::Metadata metadata{{"format", "nmt"},
                                         {"updates", std::to_string(checkpoint.updates)}};
    record("model.safetensors",
           safetensors::write(aside + "/model.safetensors", checkpoint.model, metadata));
    record("state.safetensors",
           safetensors::write(aside + "/state.safetensors", checkpoint.state, metadata));
    write_file(aside + "/state.json", checkpoint.info);
    record("state.json", {checkpoint.info.size(), crc32(checkpoint.info)});
    const ordered_json manifest{{"updates", checkpoint.updates},
                                {"best", is_best},
                                {"checksum", "CRC-32 as in zlib"},
                                {"files", files}};
    write_file(aside + "/manifest.json",
               json_text(checkpoint_format, checkpoint_version, manifest));
  });
  // The best first: a kill in between repeats the updates since `latest`, and finds the best again.
  if (is_best) set_link("best", name.text());
  set_link("latest", name.text());
  remove_old(keep_last, keep_best);
}

void ModelDirectory::set_link(const char* link, const std::string& name) const {
  const std::string aside = fmt::format("{}/.tmp-{}-{}", path_, link, ::getpid()),
                    target = "checkpoints/" + name;
  std::error_code error;
  fs::remove_all(aside, error);
  if (is_copied_link(path_, link)) {  // rename() does not replace a directory by a link
    const std::string old = aside + "-old";
    fs::rename(path_ + "/" + link, old, error);
    if (!error) fs::remove_all(old, error);
    if (error)
      fail(ExitStatus::failed, "{}/{}: cannot be removed: {}", path_, link, error.message());
  }
  if (::symlink(target.c_str(), aside.c_str()) != 0 ||
      ::rename(aside.c_str(), (path_ + "/" + link).c_str()) != 0) {
    const int reason = errno;
    ::unlink(aside.c_str());
    fail(ExitStatus::failed, "{}/{}: cannot link to {}: {}", path_, link, target,
         std::strerror(reason));
  }
  sync_directory(path_);
}

void ModelDirectory::remove_old(int keep_last, int keep_best) const {
  const auto latest = linked_folder(path_, "latest"), best = linked_folder(path_, "best");
  std::set<std::int64_t> counted, counted_best;  // updates; of two copies the newer stays
  std::vector<FolderName> names = folders_of(path_);
  std::reverse(names.begin(), names.end());
  for (const FolderName& name : names) {
    bool keep = name == latest || name == best;
    const bool is_new = counted.insert(name.updates).second;
    keep = keep || (is_new && counted.size() <= static_cast<std::size_t>(keep_last));
    if (is_new && counted_best.size() < static_cast<std::size_t>(keep_best) &&
        was_best(checkpoints_of(path_) + "/" + name.text()))
      keep = counted_best.insert(name.updates).second || keep;
    if (!keep) remove_folder(path_, name);
  }
}

void ModelDirectory::clean_up() {
  remove_temporaries(path_);
  remove_temporaries(checkpoints_of(path_));
  const auto last = this->latest();
  if (!last) return;
  const auto best = linked_folder(path_, "best");
  if (is_copied_link(path_, "best") && best) set_link("best", best->text());
  if (!is_link("latest")) {
    std::string name = fs::path(last->folder()).filename().string();
    if (!parse_folder_name(name)) {  // the copied link itself: a copy without its checkpoints
      name = FolderName{last->updates(), 0}.text();
      make_directories(checkpoints_of(path_));
      fs::rename(last->folder(), checkpoints_of(path_) + "/" + name);
    }
    log::warn("{}/latest was missing or not a symbolic link; now links to checkpoint {}", path_,
              name);
    set_link("latest", name);
  }
  remove_newer();
}

void ModelDirectory::return_to(std::int64_t updates) {
  set_link("latest", fs::path(checkpoint(updates).folder()).filename().string());
  remove_newer();
}

// A checkpoint newer than `latest` is whole, but training goes on from `latest` and will make it
// again.
void ModelDirectory::remove_newer() const {
  const auto latest = linked_folder(path_, "latest"), best = linked_folder(path_, "best");
  for (const FolderName& name : folders_of(path_)) {
    if (latest && name > *latest && name != best) remove_folder(path_, name);
  }
}

bool ModelDirectory::is_link(const char* name) const {
  std::error_code error;
  return fs::is_symlink(path_ + "/" + name, error);
}

std::optional<StoredCheckpoint> ModelDirectory::latest() const {
  if (auto checkpoint = follow("latest")) return checkpoint;
  const std::vector<FolderName> names = folders_of(path_);
  if (names.empty()) return std::nullopt;
  return StoredCheckpoint(checkpoints_of(path_) + "/" + names.back().text());
}

std::string ModelDirectory::latest_name() const {
  if (is_copied_link(path_, "latest")) return "";
  if (is_link("latest")) {
    const auto name = linked_folder(path_, "latest");
    return name ? name->text() : "";
  }
  const std::vector<FolderName> names = folders_of(path_);
  return names.empty() ? "" : names.back().text();
}

std::optional<StoredCheckpoint> ModelDirectory::follow(const char* link) const {
  const auto name = linked_folder(path_, link);
  if (is_copied_link(path_, link))
    return StoredCheckpoint(name ? checkpoints_of(path_) + "/" + name->text() : path_ + "/" + link);
  if (!is_link(link)) return std::nullopt;
  if (!name) fail(ExitStatus::data, "{}/{}: is no link to a checkpoint", path_, link);
  return StoredCheckpoint(checkpoints_of(path_) + "/" + name->text());
}

StoredCheckpoint ModelDirectory::published() const {
  if (auto checkpoint = best()) return *checkpoint;
  if (auto checkpoint = latest()) return *checkpoint;
  fail(ExitStatus::data, "{}: has no checkpoint yet", path_);
}

std::vector<std::int64_t> ModelDirectory::checkpoints() const {
  std::vector<std::int64_t> updates;
  for (const FolderName& name : folders_of(path_)) {
    if (updates.empty() || updates.back() != name.updates) updates.push_back(name.updates);
  }
  return updates;
}

StoredCheckpoint ModelDirectory::checkpoint(std::int64_t updates) const {
  std::optional<FolderName> found;  // of two copies the newer
  for (const FolderName& name : folders_of(path_))
    if (name.updates == updates) found = name;
  if (found) return StoredCheckpoint(checkpoints_of(path_) + "/" + found->text());
  std::string there;
  for (const std::int64_t each : checkpoints())
    there += fmt::format("{}{}", there.empty() ? "" : ", ", each);
  fail(ExitStatus::usage, "{}: has no checkpoint of update {}; there are: {}", path_, updates,
       there.empty() ? "none" : there);
}

std::string ModelDirectory::shortlist() const {
  std::error_code error;
  return std::filesystem::is_regular_file(shortlist_path(), error) ? read_file(shortlist_path())
                                                                   : std::string();
}

}  // namespace nmt
