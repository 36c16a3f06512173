#include "serve/model_version.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace nmt::serve {

std::string version_of(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::string version;
  std::vector<fs::path> folders{directory};
  const auto add_time = [&](const fs::path& path) {
    const auto time = fs::last_write_time(path, error);
    if (!error) version += fmt::format(" {}", time.time_since_epoch().count());
  };
  for (const char* link : {"best", "latest"}) {
    const fs::path target = fs::read_symlink(fs::path(directory) / link, error);
    if (error) continue;
    version = target.string();
    folders.push_back(fs::path(directory) / link);
    add_time(fs::path(directory) / link / "manifest.json");
    break;
  }
  add_time(fs::path(directory) / "config.json");
  if (error) return "";
  // Weights, vocabularies and shortlists may come after the manifest, as in a copy that is under
  // way.
  std::set<std::string> files;
  for (const fs::path& folder : folders)
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const fs::path& path = entry->path();
      if (path.extension() != ".spm" && path.extension() != ".safetensors" &&
          path.extension() != ".bin")
        continue;
      std::error_code unreadable;
      files.insert(fmt::format(" {}:{}:{}", path.filename().string(), entry->file_size(unreadable),
                               entry->last_write_time(unreadable).time_since_epoch().count()));
    }
  for (const std::string& file : files) version += file;
  return version;
}

}  // namespace nmt::serve
