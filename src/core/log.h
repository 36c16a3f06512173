#pragma once

#include <string_view>

#include <fmt/format.h>

namespace nmt::log {

enum class Level { debug, info, warn, error, off };

/// Lines below this level are dropped. Default: info.
void set_level(Level level);
Level level();

/// Who speaks, in front of every line: "rank 1: ". Default: nothing.
void set_speaker(std::string_view name);

/// Writes one whole line to standard error (one write, so that threads do not mix), warnings and
/// errors with their name in front.
void line(Level level, std::string_view text);

/// One refreshed line below all others, for progress on a terminal: replaces the one before; ""
/// removes it. Cut to the terminal's width. Does nothing when standard error is no terminal.
void status(std::string_view text);
/// Whether standard error is a terminal.
bool on_terminal();
/// Seconds since the last line or status was written; since the start of the program when there was
/// none.
double silence();

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
