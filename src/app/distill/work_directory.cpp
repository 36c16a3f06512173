#include "app/distill/work_directory.h"

#include "core/error.h"
#include "core/file.h"
#include "core/temporary.h"

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

bool continues(DistillStep step) {
  return step == DistillStep::translate || step == DistillStep::select ||
         step == DistillStep::align || step == DistillStep::train;
}

}  // namespace

WorkDirectory::~WorkDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

void WorkDirectory::open() {
  std::error_code error;
  if (fs::is_directory(path_, error) && !fs::exists(at("steps"), error) &&
      fs::directory_iterator(path_, error) != fs::directory_iterator())
    fail(ExitStatus::usage,
         "output: {} contains other files and no steps of nmt-distill; name a new directory",
         path_);
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
    return Record{json.at("settings"), json.at("finished").get<bool>(), json.at("result")};
  } catch (const nlohmann::json::exception&) {
    fail(ExitStatus::data, "{}: is not a step of nmt-distill; repeat the step with --redo {}", path,
         name_of(step));
  }
}

void WorkDirectory::write(DistillStep step, const Record& record) const {
  const Json json{
      {"settings", record.settings}, {"finished", record.finished}, {"result", record.result}};
  write_file(record_path(step), json.dump(2) + "\n");
}

void WorkDirectory::remove(DistillStep step) const {
  remove_all(record_path(step));
  for (const std::string& name : outputs(step)) remove_all(at(name));
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
