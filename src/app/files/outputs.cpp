#include "app/files/outputs.h"

#include "app/train/directory/directory_checks.h"
#include "core/error.h"
#include "core/files/file.h"

#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

namespace nmt::app {
namespace {

namespace fs = std::filesystem;

// What cannot be resolved is refused where it is opened.
fs::path resolved(const std::string& path) {
  std::error_code error;
  const fs::path full = fs::absolute(path, error);
  const fs::path found = fs::weakly_canonical(full, error);
  return error ? full : found;
}

bool is_regular(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

void check_against_files(const JobInputs& read, const NamedOutput& output) {
  const bool is_standard = output.path == "-";
  const std::string path = is_standard ? "/dev/stdout" : output.path;
  if (!is_regular(path)) return;
  std::error_code error;
  for (const std::string& name : read.files) {
    const std::string input = name == "-" ? "/dev/stdin" : name;
    if (is_regular(input) && fs::equivalent(input, path, error))
      fail(ExitStatus::usage, "{}: {} is the input; name another file", output.option,
           is_standard ? "standard output" : output.path);
  }
}

void check_against_models(const JobInputs& read, const NamedOutput& output) {
  const fs::path path = resolved(output.path);
  for (const std::string& model : read.models) {
    const fs::path within = path.lexically_relative(resolved(model));
    const std::string first = within.empty() ? "" : within.begin()->string();
    if (belongs_to_model(first))
      fail(ExitStatus::usage, "{}: {} is a file of the model {}; name another one", output.option,
           output.path, model);
  }
}

}  // namespace

bool is_standard_output(const std::string& file) {
  if (file == "-") return true;
  const std::optional<FileIdentity> identity = identity_of(file);
  return identity && identity == identity_of("/dev/stdout") && identity != identity_of("/dev/null");
}

void check_outputs(const JobInputs& read, std::initializer_list<NamedOutput> outputs) {
  std::map<fs::path, const char*> named;
  for (const NamedOutput& output : outputs) {
    if (output.path.empty()) continue;
    check_against_files(read, output);
    if (output.path == "-") continue;
    std::error_code error;
    if (!fs::exists(output.path, error) || is_regular(output.path)) {
      const auto [before, is_new] = named.emplace(resolved(output.path), output.option);
      if (!is_new)
        fail(ExitStatus::usage, "{} and {}: both are {}; name two files", before->second,
             output.option, output.path);
    }
    check_against_models(read, output);
  }
}

}  // namespace nmt::app
