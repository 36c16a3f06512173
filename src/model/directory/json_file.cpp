#include "model/directory/json_file.h"

#include "core/error.h"
#include "core/files/file.h"

#include <filesystem>

namespace nmt {

using nlohmann::ordered_json;

JsonFile::JsonFile(const std::string& path, const std::string& format, int newest_version)
    : path_(path) {
  constexpr std::int64_t largest = 16 << 20;
  constexpr int deepest = 16;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    fail(ExitStatus::data, "{}: {}", path,
         error && error != std::errc::no_such_file_or_directory ? error.message() : "is missing");
  bool too_deep = false;
  const auto watch = [&](int depth, ordered_json::parse_event_t, ordered_json&) {
    too_deep = too_deep || depth > deepest;
    return !too_deep;
  };
  const std::string text = read_file(path, largest);
  try {
    object_ = ordered_json::parse(text, watch);
  } catch (const ordered_json::parse_error& problem) {
    if (text.empty()) fail(ExitStatus::data, "{}: is empty", path);
    if (problem.byte > text.size())
      fail(ExitStatus::data, "{}: is truncated or not JSON: it ends after {} bytes", path,
           text.size());
    fail(ExitStatus::data, "{}: is truncated or not JSON, at byte {} of {}", path, problem.byte,
         text.size());
  } catch (const ordered_json::out_of_range&) {
    fail(ExitStatus::data, "{}: has a number that is out of range", path);
  }
  if (too_deep || !object_.is_object() || !object_.contains("format") ||
      object_["format"] != format)
    fail(ExitStatus::data, "{}: is not of the format {}", path, format);
  const std::int64_t version = integer("version", 1);
  if (version > newest_version)
    fail(ExitStatus::data,
         "{}: has version {}, but this program supports at most {}; use a newer program", path,
         version, newest_version);
}

const ordered_json& JsonFile::at(const char* key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) fail(ExitStatus::data, "{}: {}: is missing", path_, key);
  return *found;
}

void JsonFile::wrong(const std::string& key, const std::string& expected) const {
  fail(ExitStatus::data, "{}: {}: invalid value, expected {}", path_, key, expected);
}

std::int64_t JsonFile::integer(const char* key, std::int64_t least) const {
  const ordered_json& value = at(key);
  if (!value.is_number_integer() || value.get<std::int64_t>() < least)
    wrong(key, fmt::format("a whole number of at least {}", least));
  return value.get<std::int64_t>();
}

bool JsonFile::boolean(const char* key) const {
  const ordered_json& value = at(key);
  if (!value.is_boolean()) wrong(key, "true or false");
  return value.get<bool>();
}

std::string json_text(const std::string& format, int version, const ordered_json& object) {
  ordered_json whole{{"format", format}, {"version", version}};
  whole.update(object);
  return whole.dump(2) + "\n";
}

}  // namespace nmt
