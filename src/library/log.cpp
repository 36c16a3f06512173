#include "nmt/log.h"

#include "core/log_handler.h"

#include <utility>

namespace nmt {
namespace {

// Before any function of the library can log. Programs set their own level.
[[maybe_unused]] const bool starts_with_warnings = (log::set_level(log::Level::warn), true);

log::Level internal(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return log::Level::debug;
    case LogLevel::info: return log::Level::info;
    case LogLevel::warning: return log::Level::warn;
    case LogLevel::error: return log::Level::error;
    case LogLevel::off: break;
  }
  return log::Level::off;
}

LogLevel external(log::Level level) {
  switch (level) {
    case log::Level::debug: return LogLevel::debug;
    case log::Level::info: return LogLevel::info;
    case log::Level::warn: return LogLevel::warning;
    case log::Level::error: return LogLevel::error;
    case log::Level::off: break;
  }
  return LogLevel::off;
}

}  // namespace

void set_log_level(LogLevel level) {
  log::set_level(internal(level));
}

void set_log_handler(std::function<void(LogLevel, const std::string&)> handler) {
  if (!handler) {
    log::set_handler({});
    return;
  }
  log::set_handler([handler = std::move(handler)](log::Level level, std::string_view text) {
    handler(external(level), std::string(text));
  });
}

}  // namespace nmt
