#pragma once

#include "nmt/error.h"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace nmt {

/// A message as one line that a terminal shows as it is: white space as spaces, other control
/// characters, which file names may contain, as "?".
std::string one_line(std::string message);

/// Throws an Error with a formatted message, in one_line().
template <class... Args>
[[noreturn]] void fail(ExitStatus status, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(status, one_line(fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace nmt

/// Throws an Error with ExitStatus::failed: NMT_FAIL("no unit {}", name).
#define NMT_FAIL(...) ::nmt::fail(::nmt::ExitStatus::failed, __VA_ARGS__)
/// Checks a precondition, in release builds too.
#define NMT_CHECK(condition, ...)            \
  do {                                       \
    if (!(condition)) NMT_FAIL(__VA_ARGS__); \
  } while (false)
