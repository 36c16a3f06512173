#include "library/shared_models.h"

#include "core/error.h"

#include <fmt/ranges.h>

namespace nmt::library {

LoadingSettings loading_settings(std::vector<config::Option> options) {
  LoadingSettings settings;
  for (const char* name : {"max-length", "no-spm-encode", "device", "workers", "cpu-threads",
                           "precision", "weights", "ensemble"})
    settings[name] = config::values(config::named(options, name));
  return settings;
}

void adopt_loading_settings(const LoadingSettings& loaded, std::vector<config::Option> asked,
                            const LoadingSettings& defaults) {
  const auto text = [](const std::vector<std::string>& words) {
    return words.empty() ? "none" : fmt::format("{}", fmt::join(words, " "));
  };
  for (const auto& [name, words] : loading_settings(asked)) {
    const std::vector<std::string>& present = loaded.at(name);
    if (words == present) continue;
    if (words != defaults.at(name))
      fail(ExitStatus::usage, "{}: {} differs from the loaded models, which have {}: {}", name,
           text(words), name, text(present));
    config::assign(config::named(asked, name), present, name);
  }
}

}  // namespace nmt::library
