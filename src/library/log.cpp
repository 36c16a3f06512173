#include "nmt/log.h"

#include "core/log_handler.h"
#include "library/log_level.h"

#include <mutex>
#include <utility>

namespace nmt {
namespace {

std::mutex one_at_a_time;
bool level_is_set = false;
// Programs set their own. Here too, since some functions of the library log before they could call
// use_default_log_level().
[[maybe_unused]] const bool starts_quiet = (log::set_level(log::Level::warn), true);

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
  const std::lock_guard lock(one_at_a_time);
  level_is_set = true;
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

namespace library {

void use_default_log_level() {
  const std::lock_guard lock(one_at_a_time);
  if (!std::exchange(level_is_set, true)) log::set_level(log::Level::warn);
}

}  // namespace library
}  // namespace nmt
