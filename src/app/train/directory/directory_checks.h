#pragma once

#include <array>
#include <string>

namespace nmt::app {

/// What a training writes beside the model (ModelDirectory::contents).
inline constexpr std::array training_records = {"train.jsonl", "development.json"};

/// Whether a model directory may have an entry of this name: of the model, of its training, or a
/// temporary one.
bool belongs_to_model(const std::string& name);

// The following are called at the start of a training rather than at the first save, which may be
// hours later. Errors (usage).

/// Refuses a file, a directory with other contents than a model, and a dangling symbolic link.
void refuse_foreign(const std::string& path);
/// Refuses a directory in which files cannot be created.
void require_writable(const std::string& directory);
/// Refuses a missing directory if its nearest existing parent is no directory, or not writable.
void require_creatable(const std::string& directory);

}  // namespace nmt::app
