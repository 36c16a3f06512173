#include "core/error.h"
#include "core/files/file.h"
#include "model/directory/model_directory.h"
#include "serve/model_map.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/ranges.h>

namespace nmt::serve {
namespace {

using OnSkipped = std::function<void(const std::string&)>;

void add(std::vector<ModelEntry>& entries, const Direction& direction, const std::string& directory,
         const OnSkipped& refuse) {
  for (const ModelEntry& entry : entries)
    if (entry.direction == direction)
      return refuse(fmt::format("models: {} and {} both translate {} to {}; keep one of them",
                                entry.directory, directory, direction.source, direction.target));
  entries.push_back({static_cast<int>(entries.size()), direction, directory});
}

// Why an entry of a folder is no model that can be served; empty: it is one.
std::string reason_to_skip(const std::string& name, const std::string& path, Direction& direction) {
  if (!parse_direction(name, direction))
    return "its name is not two languages, for example en-de or pt-BR_en";
  if (!ModelDirectory::is_there(path)) return "it contains no model: config.json is missing";
  // Loading reports what is damaged. Until then the directory may have changed.
  const std::optional<Task> task = ModelDirectory::task_at(path);
  if (task.value_or(Task::translation) == Task::translation) return "";
  return fmt::format("it is {}; expected {}", model_of(*task), model_of(Task::translation));
}

void add_folder(std::vector<ModelEntry>& entries, const std::string& folder,
                const OnSkipped& on_skipped, const OnSkipped& refuse) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(folder, error))
    names.push_back(each.path().filename().string());
  if (error) return refuse(fmt::format("models: {}: {}", folder, error.message()));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    Direction direction;
    const std::string path = (std::filesystem::path(folder) / name).string();
    const std::string reason = reason_to_skip(name, path, direction);
    if (reason.empty())
      add(entries, direction, path, refuse);
    else
      on_skipped(fmt::format("{}: {}", path, reason));
  }
}

}  // namespace

std::vector<ModelEntry> find_models(const std::vector<std::string>& words,
                                    const OnSkipped& on_skipped, bool is_running) {
  // What cannot be used is an error at the start. Later it is skipped, so that it does not keep the
  // other models from changing.
  const OnSkipped refuse = [&](const std::string& message) {
    if (!is_running) fail(ExitStatus::usage, "{}", message);
    on_skipped(message);
  };
  std::vector<ModelEntry> entries;
  std::error_code error;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    Direction direction;
    if (equals != std::string::npos && parse_direction(word.substr(0, equals), direction)) {
      const std::string directory = word.substr(equals + 1);
      // Later, a directory that cannot be read keeps its place, and its loaded model.
      if (!is_running) ModelDirectory::open(directory).require(Task::translation);
      add(entries, direction, directory, refuse);
    } else if (is_directory(word) && !ModelDirectory::is_there(word)) {
      add_folder(entries, word, on_skipped, refuse);
    } else if (equals == std::string::npos && !std::filesystem::exists(word, error)) {
      refuse(fmt::format("models: {} does not exist", word));
    } else {
      refuse(
          fmt::format("models: '{}': expected LANGUAGES=DIRECTORY, for example en-de=model or "
                      "pt-BR_en=model, or a folder of model directories with such names",
                      word));
    }
  }
  if (entries.empty())
    fail(ExitStatus::usage,
         "models: none{}; expected en-de=DIRECTORY, or a folder of model directories named en-de, "
         "de-en, ...",
         words.empty() ? "" : fmt::format(" in {}", fmt::join(words, ", ")));
  return entries;
}

}  // namespace nmt::serve
