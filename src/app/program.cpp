#include "app/program.h"

#include "app/common_options.h"
#include "core/files/mapped_file.h"
#include "core/files/temporary.h"
#include "core/log.h"
#include "kernels/instruction_set.h"
#include "kernels/products/bf16/bf16_products.h"
#include "kernels/products/int8/gemm_int8.h"
#include "nn/unit_registry.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <new>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace nmt::app {
namespace {

int tell(ExitStatus status, const std::string& message) {
  log::status("");
  log::error("{}", message);
  return static_cast<int>(status);
}

std::string version(const std::string& program) {
  return fmt::format("{} {}\n", program, NMT_VERSION);
}

std::string build_info(const std::string& program) {
#if defined(NDEBUG)
  const char* kind = "release";
#else
  const char* kind = "with assertions";
#endif
  std::string units;
  for (const std::string& name : unit_names()) units += (units.empty() ? "" : " ") + name;
  const kernels::Bf16Products& rounded = kernels::bf16_products();
  return version(program) +
         fmt::format("compiler: {}\nbuild: {}\nCUDA: {}\nkernels: {}, {}, int8 by {}\nunits: {}\n",
                     __VERSION__, kind, NMT_CUDA_TOOLKIT, kernels::instruction_set(),
                     rounded.is_native ? rounded.name : "bfloat16 by float32",
                     kernels::int8_instructions(), units);
}

log::Level level_of(const std::string& name) {
  static const std::map<std::string, log::Level> levels{{"debug", log::Level::debug},
                                                        {"info", log::Level::info},
                                                        {"warn", log::Level::warn},
                                                        {"error", log::Level::error},
                                                        {"off", log::Level::off}};
  return levels.at(name);
}

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    fail(ExitStatus::failed, "standard output: cannot be written: {}", std::strerror(errno));
}

bool dump_if_asked(const config::Settings& settings) {
  if (settings.asks_dump().empty()) return false;
  print(settings.yaml(settings.asks_dump() == "full"));
  return true;
}

namespace {

void check_effects(const config::Settings& settings) {
  if (settings.has_effects_checked_later() || !settings.asks_dump().empty()) return;
  report_idle_options(settings.without_effect(false), settings.without_effect(true));
}

std::string memory_advice(const config::Settings& settings) {
  const std::vector<std::string> names = settings.names();
  std::string advice;
  for (const char* name : {"mini-batch-words", "mini-batch", "maxi-batch", "max-length",
                           "beam-size", "dim-emb", "dim-rnn"})
    if (std::find(names.begin(), names.end(), name) != names.end())
      advice += (advice.empty() ? "; reduce --" : ", --") + std::string(name);
  return advice;
}

// `advice` completes the messages of exhausted memory, `explain` that of an nmt::Error.
int run(const std::function<int()>& body, const std::function<void()>& on_error,
        const std::string& advice, const std::function<std::string(const std::string&)>& explain) {
  const auto leave = [&](ExitStatus status, const std::string& message) {
    if (on_error) on_error();
    return tell(status, message);
  };
  try {
    return body();
  } catch (const Error& error) {
    return leave(error.status(), explain ? explain(error.what()) : error.what());
  } catch (const OutOfMemory& error) {
    return leave(ExitStatus::memory, error.what() + advice);
  } catch (const std::bad_alloc&) {
    return leave(ExitStatus::memory, "out of memory" + advice);
  } catch (const std::exception& error) {
    return leave(ExitStatus::failed, error.what());
  }
}

// A file opened where a standard descriptor is closed would take its number, and messages would be
// written into it. Results for a closed standard output stay an error.
void occupy_standard_descriptors() {
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) < 0)
      ::open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_RDWR);
}

}  // namespace

int run_tool(int argc, char** argv, config::Settings& settings,
             const std::function<ExitStatus()>& body, const std::function<void()>& on_error) {
  occupy_standard_descriptors();
  remove_temporaries_on_signals();
  report_shortened_files();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit of ulimit -f fails with EFBIG
  return run(
      [&] {
        settings.read(std::vector<std::string>(argv + 1, argv + argc));
        log::set_level(level_of(settings.log_level()));
        if (settings.asks_help())
          print(settings.help());
        else if (settings.asks_reference())
          print(settings.reference());
        else if (!settings.asks_completion().empty())
          print(settings.completion(settings.asks_completion()));
        else if (settings.asks_version())
          print(version(settings.program()));
        else if (settings.asks_build_info())
          print(build_info(settings.program()));
        else {
          check_effects(settings);
          return static_cast<int>(body());
        }
        return static_cast<int>(ExitStatus::ok);
      },
      on_error, memory_advice(settings),
      [&](const std::string& message) { return settings.with_source(message); });
}

int run_program(const std::function<int()>& body, const std::function<void()>& on_error) {
  return run(body, on_error, "", {});
}

}  // namespace nmt::app
