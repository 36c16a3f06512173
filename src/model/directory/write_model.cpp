#include "model/directory/write_model.h"

#include "core/error.h"
#include "core/files/file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <unistd.h>

namespace nmt {

void expect_new(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error)))
    fail(ExitStatus::usage, "output: {} already exists; give a new path", path);
  std::filesystem::path whole = std::filesystem::absolute(path, error);
  if (!whole.has_filename()) whole = whole.parent_path();  // "model/"
  const std::filesystem::path folder = whole.parent_path();
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    fail(ExitStatus::usage, "output: {} cannot be created: {}", path, std::strerror(errno));
}

void write_model(const std::string& path, const ModelDirectory& like,
                 std::span<const safetensors::View> tensors, Dtype weights, std::int64_t updates,
                 const std::string& info, const std::string& shortlist) {
  expect_new(path);
  const VocabularyPair vocabularies = like.load_vocabularies();
  write_directory(path, [&](const std::string& aside) {
    ModelDirectory made = ModelDirectory::create(aside, like.spec(), *vocabularies.source,
                                                 *vocabularies.target, weights);
    CheckpointContents checkpoint;
    checkpoint.updates = updates;
    checkpoint.model.assign(tensors.begin(), tensors.end());
    checkpoint.info = info;
    made.save(checkpoint, true, 1, 1);
    if (!shortlist.empty()) write_file(made.shortlist_path(), shortlist);
  });
}

}  // namespace nmt
