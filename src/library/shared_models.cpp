#include "library/shared_models.h"

#include "core/error.h"

namespace nmt::library {

std::vector<std::string> loading_settings(std::vector<config::Option> options) {
  std::vector<std::string> settings;
  for (const char* name : {"max-length", "no-spm-encode", "device", "workers", "cpu-threads",
                           "precision", "weights", "ensemble"})
    settings.push_back(
        fmt::format("{}: {}", name, config::joined_values(config::named(options, name))));
  return settings;
}

void require_same_loading(const std::vector<std::string>& loaded,
                          const std::vector<std::string>& asked) {
  for (std::size_t i = 0; i < loaded.size(); ++i)
    if (loaded[i] != asked[i])
      fail(ExitStatus::usage, "{} differs from the loaded models, which have {}", asked[i],
           loaded[i]);
}

}  // namespace nmt::library
