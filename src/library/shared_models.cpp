#include "library/shared_models.h"

#include "core/error.h"

#include <chrono>
#include <set>
#include <string_view>

#include <fmt/ranges.h>

namespace nmt::library {

std::unique_lock<std::timed_mutex> SharedModels::lock_call(const ShouldStop& stop) {
  if (!stop) return std::unique_lock(one_call);
  std::unique_lock lock(one_call, std::defer_lock);
  while (!lock.try_lock_for(std::chrono::milliseconds(50)))
    if (stop()) fail(ExitStatus::interrupted, "stopped by the caller");
  return lock;
}

LoadingSettings loading_settings(std::vector<config::Option> options) {
  // Scorers have no language model.
  static const std::set<std::string_view> names{
      "max-length", "no-spm-encode", "device",      "workers",     "cpu-threads", "precision",
      "weights",    "ensemble",      "recurrences", "cuda-graphs", "lm",          "lm-weight"};
  LoadingSettings settings;
  for (const config::Option& option : options)
    if (names.contains(option.name)) settings[option.name] = config::values(option);
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
