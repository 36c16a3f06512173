#pragma once

#include <string_view>

#include <fmt/format.h>

namespace nmt::log {

enum class Level { debug, info, warn, error, off };

/// Lines below this level are dropped. Default: info.
void set_level(Level level);
Level level();

/// Prefix of every line, for example "rank 1: ". Default: empty.
void set_prefix(std::string_view name);

/// Writes one_line() of a text to standard error with a single write(), so that lines of different
/// threads do not mix. Warnings and errors are prefixed with their level.
void line(Level level, std::string_view text);

/// Shows a progress line below the log, replacing the previous one; "" removes it. It is cut to the
/// width of the terminal. No effect when standard error is not a terminal.
void status(std::string_view text);
/// Whether standard error is a terminal.
bool on_terminal();
/// Seconds since the last line or status was written, or since the program started when there was
/// none.
double seconds_since_last_write();

template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  line(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  line(Level::warn, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  line(Level::error, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  line(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace nmt::log
