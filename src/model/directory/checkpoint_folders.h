#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nmt {

/// The name of a checkpoint's folder: "<updates>", or "<updates>.<n>" where that name was taken by
/// one that a link still names.
struct FolderName {
  std::int64_t updates = 0, copy = 0;
  auto operator<=>(const FolderName&) const = default;
  std::string text() const;
};

/// Null: not the name of a checkpoint's folder.
std::optional<FolderName> parse_folder_name(const std::string& text);

// `path`: a model directory.

/// The directory of the checkpoints.
std::string checkpoints_of(const std::string& path);
/// The folders of the checkpoints, ascending. Error (usage): they cannot be read.
std::vector<FolderName> folders_of(const std::string& path);
/// Whether a directory is in the place of the link, as in a copy that follows symbolic links (scp
/// -r, cp -L).
bool is_copied_link(const std::string& path, const char* link);
/// The folder that a link names, if it is one of the checkpoints. Error (data): as
/// StoredCheckpoint, for a copied link.
std::optional<FolderName> linked_folder(const std::string& path, const char* link);
/// Removes a checkpoint. Error (failed).
void remove_folder(const std::string& path, const FolderName& name);
/// Whether the checkpoint in `folder` was saved as the best so far. False for a damaged manifest,
/// with a warning.
bool was_best(const std::string& folder);

}  // namespace nmt
