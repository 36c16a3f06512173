#include "app/train/directory/directory_checks.h"

#include "core/error.h"
#include "core/files/temporary.h"
#include "model/directory/model_directory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <unistd.h>

namespace nmt::app {

namespace fs = std::filesystem;

bool belongs_to_model(const std::string& name) {
  const auto& of_model = ModelDirectory::contents;
  return std::find(of_model.begin(), of_model.end(), name) != of_model.end() ||
         std::find(training_records.begin(), training_records.end(), name) !=
             training_records.end() ||
         is_temporary_name(name);
}

void refuse_foreign(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    if (fs::is_symlink(fs::symlink_status(path, error)))
      fail(ExitStatus::usage, "model: the target of the symbolic link {} does not exist", path);
    return;
  }
  if (!fs::is_directory(status))
    fail(ExitStatus::usage, "model: {} is a file, not a model directory", path);
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (!belongs_to_model(name))
      fail(ExitStatus::usage,
           "model: the directory {} contains other files ({}); name a new directory", path, name);
  }
  if (error) fail(ExitStatus::usage, "model: {} cannot be read: {}", path, error.message());
}

void require_writable(const std::string& directory) {
  if (::access(directory.c_str(), W_OK | X_OK) != 0)
    fail(ExitStatus::usage, "model: {} cannot be written: {}", directory, std::strerror(errno));
}

void require_creatable(const std::string& directory) {
  std::error_code error;
  fs::path parent = fs::absolute(directory, error);
  while (parent.has_relative_path() && !fs::exists(parent, error)) parent = parent.parent_path();
  if (!fs::is_directory(parent, error))
    fail(ExitStatus::usage, "model: {} cannot be created: {} is not a directory", directory,
         parent.string());
  if (::access(parent.c_str(), W_OK | X_OK) != 0)
    fail(ExitStatus::usage, "model: {} cannot be created in {}: {}", directory, parent.string(),
         std::strerror(errno));
}

}  // namespace nmt::app
