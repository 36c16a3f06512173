#include "model/directory/checkpoint_folders.h"

#include "core/error.h"
#include "core/log.h"
#include "model/directory/model_directory.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace nmt {

namespace fs = std::filesystem;

std::string FolderName::text() const {
  return copy == 0 ? fmt::format("{}", updates) : fmt::format("{}.{}", updates, copy);
}

std::optional<FolderName> parse_folder_name(const std::string& text) {
  FolderName name;
  const char* end = text.data() + text.size();
  std::from_chars_result result = std::from_chars(text.data(), end, name.updates);
  if (result.ec == std::errc() && result.ptr != end && *result.ptr == '.')
    result = std::from_chars(result.ptr + 1, end, name.copy);
  return result.ec == std::errc() && result.ptr == end && name.text() == text ? std::optional(name)
                                                                              : std::nullopt;
}

std::string checkpoints_of(const std::string& path) {
  return path + "/checkpoints";
}

std::vector<FolderName> folders_of(const std::string& path) {
  std::vector<FolderName> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoints_of(path), error)) {
    if (const auto name = parse_folder_name(entry.path().filename().string()))
      names.push_back(*name);
  }
  if (error && error != std::errc::no_such_file_or_directory)
    fail(ExitStatus::usage, "{}: {}", checkpoints_of(path), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_copied_link(const std::string& path, const char* link) {
  std::error_code error;
  return fs::is_directory(fs::symlink_status(path + "/" + link, error));
}

std::optional<FolderName> linked_folder(const std::string& path, const char* link) {
  std::error_code error;
  if (is_copied_link(path, link)) {
    const FolderName name{StoredCheckpoint(path + "/" + link).updates(), 0};
    if (!fs::exists(checkpoints_of(path) + "/" + name.text(), error)) return std::nullopt;
    return name;
  }
  const fs::path target = fs::read_symlink(path + "/" + link, error);
  return error ? std::nullopt : parse_folder_name(target.filename().string());
}

// Renamed first: a kill inside leaves no half checkpoint under a checkpoint's name.
void remove_folder(const std::string& path, const FolderName& name) {
  const std::string folder = checkpoints_of(path) + "/" + name.text(),
                    aside = checkpoints_of(path) + "/.tmp-old-" + name.text();
  std::error_code error;
  fs::remove_all(aside, error);
  fs::rename(folder, aside, error);
  if (!error) fs::remove_all(aside, error);
  if (error) fail(ExitStatus::failed, "{}: cannot be removed: {}", folder, error.message());
}

// Nothing is known of an older checkpoint whose manifest is damaged; that must not stop the save of
// a sound one.
bool was_best(const std::string& folder) {
  try {
    return StoredCheckpoint(folder).is_best();
  } catch (const Error& error) {
    log::warn("{}; not counted as a best checkpoint", error.what());
    return false;
  }
}

}  // namespace nmt
