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

/// Fails the run: NMT_FAIL("no unit {}", name).
#define NMT_FAIL(...) ::nmt::fail(::nmt::ExitStatus::failed, __VA_ARGS__)
/// Checks a condition that the caller must keep; also in release builds.
#define NMT_CHECK(condition, ...)            \
  do {                                       \
    if (!(condition)) NMT_FAIL(__VA_ARGS__); \
  } while (false)
