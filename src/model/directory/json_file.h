#pragma once

#include "core/nlohmann.h"

#include <cstdint>
#include <string>

namespace nmt {

inline constexpr const char* model_format = "nmt-model";
inline constexpr int model_version = 1;
inline constexpr const char* checkpoint_format = "nmt-checkpoint";
inline constexpr int checkpoint_version = 1;

/// A JSON file of a model directory: an object with a format name and a version.
class JsonFile {
 public:
  /// Errors (data): missing, not JSON, of another format, or of a newer version.
  JsonFile(const std::string& path, const std::string& format, int newest_version);
  bool has(const char* key) const { return object_.contains(key); }
  /// A required value. Errors (data) name file and key.
  const nlohmann::ordered_json& at(const char* key) const;
  std::int64_t integer(const char* key, std::int64_t least) const;
  bool boolean(const char* key) const;
  [[noreturn]] void wrong(const std::string& key, const std::string& expected) const;

 private:
  std::string path_;
  nlohmann::ordered_json object_;
};

/// Serializes an object for JsonFile, with format and version first.
std::string json_text(const std::string& format, int version, const nlohmann::ordered_json& object);

}  // namespace nmt
