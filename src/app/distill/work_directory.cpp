#include "app/distill/work_directory.h"

#include "app/distill/parts.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/files/temporary.h"
#include "model/directory/model_directory.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace nmt::app {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> outputs(DistillStep step) {
  switch (step) {
    case DistillStep::translate: return {"translate"};
    case DistillStep::select: return {"select"};
    case DistillStep::filter: return {"distilled.source", "distilled.target"};
    case DistillStep::align: return {"align", "distilled.links"};
    case DistillStep::train: return {"student"};
    case DistillStep::shortlist: return {"shortlist.txt"};
    case DistillStep::convert: return {"student-int8"};
    case DistillStep::check: return {"table.txt", "table.json"};
    case DistillStep::none: break;
  }
  return {};
}

void remove_all(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail(ExitStatus::failed, "{}: cannot be removed: {}", path, error.message());
}

// Follows symbolic links as far as the path exists.
fs::path resolved(const std::string& path) {
  std::error_code error;
  const fs::path full = fs::absolute(path, error);
  const fs::path found = fs::weakly_canonical(full, error);
  return error ? full : found;
}

bool is_model(const std::string& directory) {
  std::error_code error;
  return ModelDirectory::is_there(directory) &&
         (fs::exists(directory + "/best", error) || fs::exists(directory + "/latest", error) ||
          ModelDirectory::has_checkpoints(directory));
}

}  // namespace

bool WorkDirectory::continues(DistillStep step) {
  return step == DistillStep::translate || step == DistillStep::select ||
         step == DistillStep::align || step == DistillStep::train;
}

WorkDirectory::~WorkDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

void WorkDirectory::check() const {
  std::error_code error;
  if (fs::exists(path_, error) && !fs::is_directory(path_, error))
    fail(ExitStatus::usage, "output: {} is not a directory; name a new directory", path_);
  if (fs::is_directory(path_, error) && !fs::exists(at("steps"), error) &&
      fs::directory_iterator(path_, error) != fs::directory_iterator())
    fail(ExitStatus::usage,
         "output: {} contains other files and no steps of nmt-distill; name a new directory",
         path_);
}

void WorkDirectory::open() {
  check();
  make_directories(at("steps"));
  lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    fail(ExitStatus::usage, "output: another process is distilling in {}", path_);
}

std::string WorkDirectory::part(DistillStep step, std::int64_t number) const {
  const char* const ending = step == DistillStep::translate ? "nbest"
                             : step == DistillStep::align   ? "links"
                                                            : "tsv";
  return fmt::format("{}/{}/part-{:06}.{}", path_, name_of(step), number, ending);
}

std::string WorkDirectory::record_path(DistillStep step) const {
  return fmt::format("{}/steps/{}.json", path_, name_of(step));
}

std::optional<WorkDirectory::Record> WorkDirectory::read(DistillStep step) const {
  const std::string path = record_path(step);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    const Json json = Json::parse(read_file(path));
    Record record{json.at("settings"), json.at("finished").get<bool>(), json.at("result")};
    if (!record.finished || record.result.is_object()) return record;
  } catch (const nlohmann::json::exception&) {
  }
  refuse_record(step);
}

void WorkDirectory::refuse_record(DistillStep step) const {
  fail(ExitStatus::data, "{}: is not a step of nmt-distill; repeat the step with --redo {}",
       record_path(step), name_of(step));
}

void WorkDirectory::write(DistillStep step, const Record& record) const {
  const Json json{
      {"settings", record.settings}, {"finished", record.finished}, {"result", record.result}};
  write_file(record_path(step), dump_json(json, 2) + "\n");
}

bool WorkDirectory::has_results(DistillStep step) const {
  const std::vector<std::string> names = outputs(step);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    std::error_code error;
    if (!fs::is_directory(at(name), error)) return fs::exists(at(name), error);
    const fs::directory_iterator files(at(name));
    return std::any_of(begin(files), end(files), [](const fs::directory_entry& entry) {
      return !is_temporary_name(entry.path().filename().string());
    });
  });
}

std::string WorkDirectory::missing(DistillStep step, std::int64_t parts) const {
  for (const std::string& name : outputs(step)) {
    const bool is_model_of_step = step == DistillStep::train || step == DistillStep::convert;
    if (is_model_of_step && !is_model(at(name))) return at(name);
    std::error_code error;
    if (!fs::exists(at(name), error)) return at(name);
  }
  for (std::int64_t i = 0; i < parts; ++i)
    if (const std::string path = part(step, i); !is_file(path)) return path;
  return "";
}

bool WorkDirectory::contains(DistillStep step, const std::string& path) const {
  const std::vector<std::string> names = outputs(step);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const fs::path within = resolved(path).lexically_relative(resolved(at(name)));
    return !within.empty() && *within.begin() != "..";
  });
}

void WorkDirectory::remove(DistillStep step) const {
  for (const std::string& name : outputs(step)) remove_all(at(name));
  remove_all(record_path(step));
}

void WorkDirectory::clean(DistillStep step) const {
  remove_temporaries(path_);
  remove_temporaries(at("steps"));
  for (const std::string& name : outputs(step)) {
    std::error_code error;
    if (!continues(step))
      remove_all(at(name));
    else if (step != DistillStep::train && fs::is_directory(at(name), error))
      remove_temporaries(at(name));
  }
}

}  // namespace nmt::app
