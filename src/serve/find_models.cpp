#include "core/error.h"
#include "core/file.h"
#include "model/directory/model_directory.h"
#include "serve/model_map.h"

#include <algorithm>
#include <filesystem>

namespace nmt::serve {
namespace {

void add(std::vector<ModelEntry>& entries, const Direction& direction,
         const std::string& directory) {
  for (const ModelEntry& entry : entries)
    if (entry.direction == direction)
      fail(ExitStatus::usage, "models: {} and {} both translate {} to {}; keep one of them",
           entry.directory, directory, direction.source, direction.target);
  entries.push_back({static_cast<int>(entries.size()), direction, directory});
}

void add_folder(std::vector<ModelEntry>& entries, const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(folder, error))
    names.push_back(each.path().filename().string());
  if (error) fail(ExitStatus::usage, "models: {}: {}", folder, error.message());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    Direction direction;
    const std::string path = (std::filesystem::path(folder) / name).string();
    if (parse_direction(name, direction) && ModelDirectory::is_there(path))
      add(entries, direction, path);
  }
}

}  // namespace

std::vector<ModelEntry> find_models(const std::vector<std::string>& words) {
  std::vector<ModelEntry> entries;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    Direction direction;
    if (equals != std::string::npos && parse_direction(word.substr(0, equals), direction)) {
      const std::string directory = word.substr(equals + 1);
      ModelDirectory::open(directory).require(Task::translation);
      add(entries, direction, directory);
    } else if (is_directory(word) && !ModelDirectory::is_there(word)) {
      add_folder(entries, word);
    } else {
      fail(ExitStatus::usage,
           "models: '{}': expected LANGUAGES=DIRECTORY, for example en-de=model, or a folder of "
           "model directories with such names",
           word);
    }
  }
  if (entries.empty())
    fail(ExitStatus::usage,
         "models: none; expected en-de=DIRECTORY, or a folder of model directories named en-de, "
         "de-en, ...");
  return entries;
}

}  // namespace nmt::serve
