#include "app/train/run_record.h"

#include "core/nlohmann.h"
#include "core/shell_word.h"
#include "core/threads/thread_pool.h"
#include "kernels/instruction_set.h"

#include <cmath>
#include <ctime>
#include <filesystem>

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;

Json machine(const ThreadPool& pool) {
  utsname system{};
  ::uname(&system);
  const double bytes = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  return Json{{"processor", processor()},
              {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
              {"memory_gb", std::round(bytes * 1e-8) / 10},
              {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
              {"threads", pool.size()},
              {"instruction_set", kernels::instruction_set()}};
}

}  // namespace

std::string utc_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

Json run_record(const std::vector<std::string>& command, const std::string& settings,
                const ThreadPool& pool, const Json& of_task) {
  std::error_code error;
  Json json;
  json["time"] = utc_time();
  json["command"] = shell_command(command);
  json["folder"] = std::filesystem::current_path(error).string();
  json["versions"] = {{"nmt", NMT_VERSION},
                      {"compiler", __VERSION__},
                      {"c_library", std::string("glibc ") + ::gnu_get_libc_version()}};
  json["machine"] = machine(pool);
  json["settings"] = settings;
  json.update(of_task);
  return json;
}

}  // namespace nmt::app
