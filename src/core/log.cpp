#include "core/log.h"

#include "core/error.h"
#include "core/log_handler.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace nmt::log {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* erase = "\r\033[K";
constexpr int max_log_wait = 10'000;  // ms; a reader that takes longer loses a line

std::atomic<Level> threshold{Level::info};
std::mutex mutex;
std::string line_prefix;  // guarded by the mutex, like the next three
std::string shown_status;
std::function<void(Level, std::string_view)> handler;
Clock::time_point last_write = Clock::now();

void write_all(std::string_view text) {
  last_write = Clock::now();
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(STDERR_FILENO, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {  // a full pipe that does not block
      pollfd full{STDERR_FILENO, POLLOUT, 0};
      if (::poll(&full, 1, max_log_wait) > 0) continue;
    }
    if (n <= 0) return;  // standard error is closed; there is nowhere to report this
    done += static_cast<std::size_t>(n);
  }
}

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
}

}  // namespace

void set_level(Level level) {
  threshold = level;
}
Level level() {
  return threshold;
}

void set_prefix(std::string_view name) {
  const std::lock_guard lock(mutex);
  line_prefix = name;
}

void set_handler(std::function<void(Level, std::string_view)> function) {
  const std::lock_guard lock(mutex);
  handler = std::move(function);
}

void line(Level level, std::string_view text) {
  if (level < threshold) return;
  const char* prefix = level == Level::warn ? "warning: " : level == Level::error ? "error: " : "";
  const std::string shown = one_line(std::string(text));
  const std::lock_guard lock(mutex);
  if (handler) {
    handler(level, fmt::format("{}{}", line_prefix, shown));
    return;
  }
  write_all(fmt::format("{}{}{}{}\n{}", shown_status.empty() ? "" : erase, prefix, line_prefix,
                        shown, shown_status));
}

void status(std::string_view text) {
  if (!on_terminal() || Level::info < threshold) return;
  const std::lock_guard lock(mutex);
  if (handler || (text.empty() && shown_status.empty())) return;
  shown_status = text.substr(0, terminal_width());
  write_all(erase + shown_status);
}

bool on_terminal() {
  // A dumb terminal shows escape sequences as text.
  static const bool terminal = [] {
    const char* const type = std::getenv("TERM");
    return ::isatty(STDERR_FILENO) == 1 && !(type && std::string_view(type) == "dumb");
  }();
  return terminal;
}

double seconds_since_last_write() {
  const std::lock_guard lock(mutex);
  return std::chrono::duration<double>(Clock::now() - last_write).count();
}

}  // namespace nmt::log
