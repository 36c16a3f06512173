#pragma once

#include "nmt/error.h"

#include <utility>

#include <fmt/format.h>

namespace nmt {

/// Throws an Error with a formatted message.
template <class... Args>
[[noreturn]] void fail(ExitStatus status, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(status, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace nmt

/// Throws an Error with ExitStatus::failed: NMT_FAIL("no unit {}", name).
#define NMT_FAIL(...) ::nmt::fail(::nmt::ExitStatus::failed, __VA_ARGS__)
/// Checks a precondition, in release builds too.
#define NMT_CHECK(condition, ...)            \
  do {                                       \
    if (!(condition)) NMT_FAIL(__VA_ARGS__); \
  } while (false)
