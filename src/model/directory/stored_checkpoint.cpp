#include "core/error.h"
#include "core/files/file.h"
#include "core/hash/checksum.h"
#include "core/nlohmann.h"
#include "model/directory/json_file.h"
#include "model/directory/model_directory.h"

#include <algorithm>
#include <filesystem>
#include <limits>

namespace nmt {
namespace {

namespace fs = std::filesystem;

// In pieces whose pages are given back, so that a checked file does not count as memory.
std::uint32_t crc32_of(const MappedFile& file) {
  constexpr std::size_t piece = std::size_t{1} << 20;
  const std::string_view bytes = file.bytes();
  std::uint32_t sum = 0;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const std::string_view part = bytes.substr(at, piece);
    sum = crc32(part, sum);
    file.release(at, part.size());
  }
  return sum;
}

}  // namespace

StoredCheckpoint::StoredCheckpoint(const std::string& folder) : folder_(folder) {
  const JsonFile manifest(folder + "/manifest.json", checkpoint_format, checkpoint_version);
  updates_ = manifest.integer("updates", 0);
  best_ = manifest.boolean("best");
  const nlohmann::ordered_json& files = manifest.at("files");
  if (!files.is_object()) manifest.wrong("files", "an object");
  for (const auto& item : files.items()) {
    const std::string& name = item.key();
    const nlohmann::ordered_json& record = item.value();
    const auto number = [&](const char* key, std::uint64_t largest) {
      if (!record.is_object() || !record.contains(key) || !record[key].is_number_unsigned() ||
          record[key].get<std::uint64_t>() > largest)
        manifest.wrong(name, "bytes and crc32");
      return record[key].get<std::uint64_t>();
    };
    files_.push_back({name, number("bytes", std::numeric_limits<std::uint64_t>::max()),
                      static_cast<std::uint32_t>(number("crc32", 0xFFFFFFFF))});
  }
}

const StoredCheckpoint::FileRecord& StoredCheckpoint::record(const std::string& name) const {
  const auto found = std::find_if(files_.begin(), files_.end(),
                                  [&](const FileRecord& file) { return file.name == name; });
  if (found == files_.end())
    fail(ExitStatus::data, "{}/manifest.json: lists no file {}", folder_, name);
  return *found;
}

std::uint32_t StoredCheckpoint::model_crc32() const {
  return record("model.safetensors").crc32;
}

MappedFile StoredCheckpoint::verified(const std::string& name) const {
  const std::string path = folder_ + "/" + name;
  const FileRecord& written = record(name);
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    fail(ExitStatus::data, "{}: {}", path,
         error && error != std::errc::no_such_file_or_directory ? error.message() : "is missing");
  MappedFile file(path);
  if (file.bytes().size() != written.bytes)
    fail(ExitStatus::data, "{}: has {} bytes, but {} were written", path, file.bytes().size(),
         written.bytes);
  if (const std::uint32_t sum = crc32_of(file); sum != written.crc32)
    fail(ExitStatus::data, "{}: is damaged: its CRC-32 is {:08x}, expected {:08x}", path, sum,
         written.crc32);
  return file;
}

safetensors::File StoredCheckpoint::open_model() const {
  return safetensors::File(verified("model.safetensors"));
}
safetensors::File StoredCheckpoint::open_state() const {
  return safetensors::File(verified("state.safetensors"));
}
std::string StoredCheckpoint::read_info() const {
  return std::string(verified("state.json").bytes());
}

}  // namespace nmt
