#include "nmt/core/log.h"

#include <unistd.h>

#include <atomic>
#include <string>

namespace nmt::log {
namespace {
std::atomic<Level> threshold{Level::info};
}

void set_level(Level level) { threshold = level; }
Level level() { return threshold; }

void line(Level level, std::string_view text) {
  if (level < threshold) return;
  const char* prefix = level == Level::warn ? "warning: " : level == Level::error ? "error: " : "";
  const std::string whole = fmt::format("{}{}\n", prefix, text);
  for (std::size_t done = 0; done < whole.size();) {
    const ssize_t n = ::write(STDERR_FILENO, whole.data() + done, whole.size() - done);
    if (n <= 0) return;  // standard error is gone: nobody is left to tell
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace nmt::log
