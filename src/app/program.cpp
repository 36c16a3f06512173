#include "app/program.h"

#include "core/log.h"
#include "kernels/instruction_set.h"
#include "kernels/products/gemm_int8.h"
#include "kernels/products/rounded_products.h"
#include "nn/unit_registry.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <new>
#include <string>
#include <vector>

namespace nmt::app {
namespace {

int tell(ExitStatus status, std::string message) {
  for (char& c : message)
    if (c == '\n') c = ' ';
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
  const kernels::RoundedProducts& rounded = kernels::rounded_products();
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

int run_tool(int argc, char** argv, config::Settings& settings,
             const std::function<ExitStatus()>& body, const std::function<void()>& on_error) {
  std::signal(SIGPIPE, SIG_DFL);
  return run_program(
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
        else
          return static_cast<int>(body());
        return static_cast<int>(ExitStatus::ok);
      },
      on_error);
}

int run_program(const std::function<int()>& body, const std::function<void()>& on_error) {
  const auto leave = [&](ExitStatus status, const std::string& message) {
    if (on_error) on_error();
    return tell(status, message);
  };
  try {
    return body();
  } catch (const Error& error) {
    return leave(error.status(), error.what());
  } catch (const OutOfMemory& error) {
    return leave(ExitStatus::memory, error.what());
  } catch (const std::bad_alloc&) {
    return leave(ExitStatus::memory,
                 "out of memory; reduce the batch size: --mini-batch-words or --mini-batch, "
                 "--maxi-batch, --beam-size");
  } catch (const std::exception& error) {
    return leave(ExitStatus::failed, error.what());
  }
}

}  // namespace nmt::app
