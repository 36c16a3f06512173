#include "model/directory/model_directory.h"

#include "tests/fuzz/target.h"

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace {

// A folder of this process, removed at its end; in memory where the system has such a folder.
struct Folder {
  Folder() {
    namespace fs = std::filesystem;
    const fs::path base =
        fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    path = base / ("nmt-fuzz-" + std::to_string(::getpid()));
    fs::create_directories(path / "checkpoints/7");
    fs::create_directory_symlink("checkpoints/7", path / "latest");
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
  }
  std::filesystem::path path;
};

void write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

// The config.json of a model directory, a NUL byte, the manifest of its checkpoint, a NUL byte, and
// the weights, whose checksum is that of the manifest in few inputs only.
void nmt::fuzz::model_directory(std::string_view bytes) {
  static const Folder folder;
  const auto take = [&] {
    const std::size_t end = std::min(bytes.find('\0'), bytes.size());
    const std::string_view part = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    return part;
  };
  write(folder.path / "config.json", take());
  write(folder.path / "checkpoints/7/manifest.json", take());
  write(folder.path / "checkpoints/7/model.safetensors", bytes);
  write(folder.path / "checkpoints/7/state.json", bytes);
  read([&] { ModelDirectory::open(folder.path.string()).load_vocabularies(); });
  read([&] {
    const StoredCheckpoint checkpoint((folder.path / "checkpoints/7").string());
    checkpoint.updates();
    read([&] { checkpoint.open_model(); });
    checkpoint.read_info();
  });
}

NMT_FUZZ_TARGET(model_directory)
