#pragma once

#include <functional>
#include <string>

namespace nmt {

enum class LogLevel { debug, info, warning, error, off };

/// Drops messages below this level. The library starts with `warning`. Thread-safe.
void set_log_level(LogLevel level);

/// Receives each message as one line without its end, instead of writing it to standard error; an
/// empty function restores standard error. Messages from several threads are passed one at a time.
/// The handler must not call nmt and must not throw. Thread-safe.
void set_log_handler(std::function<void(LogLevel level, const std::string& message)> handler);

}  // namespace nmt
