#include "model/directory/model_directory.h"

#include "tests/fuzz/folder.h"
#include "tests/fuzz/target.h"

#include <filesystem>

namespace {

struct ModelFolder : nmt::fuzz::Folder {
  ModelFolder() : Folder("model") {
    std::filesystem::create_directories(path / "checkpoints/7");
    std::filesystem::create_directory_symlink("checkpoints/7", path / "latest");
  }
};

}  // namespace

// The config.json of a model directory, a NUL byte, the manifest of its checkpoint, a NUL byte, and
// the weights, whose checksum is that of the manifest in few inputs only.
void nmt::fuzz::model_directory(std::string_view bytes) {
  static const ModelFolder folder;
  const auto take = [&] {
    const std::size_t end = std::min(bytes.find('\0'), bytes.size());
    const std::string_view part = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    return part;
  };
  folder.write("config.json", take());
  folder.write("checkpoints/7/manifest.json", take());
  folder.write("checkpoints/7/model.safetensors", bytes);
  folder.write("checkpoints/7/state.json", bytes);
  read([&] { ModelDirectory::open(folder.path.string()).load_vocabularies(); });
  read([&] {
    const StoredCheckpoint checkpoint((folder.path / "checkpoints/7").string());
    checkpoint.updates();
    read([&] { checkpoint.open_model(); });
    checkpoint.read_info();
  });
}

NMT_FUZZ_TARGET(model_directory)
