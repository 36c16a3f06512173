#pragma once

#include <new>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace nmt {

/// What a program leaves with; the same numbers in every tool.
enum class ExitStatus : int {
  ok = 0,
  failed = 1,         ///< the run failed
  usage = 2,          ///< an option, a setting or a file name is wrong
  data = 3,           ///< the contents of a file are wrong
  memory = 4,         ///< out of memory
  interrupted = 130,  ///< saved on SIGINT
  terminated = 143,   ///< saved on SIGTERM
};

/// The one exception of the library: a single line that names the thing, its value and what was
/// allowed. Only tools/ catches it; docs/design/architecture.md names the two exceptions to that.
class Error : public std::runtime_error {
 public:
  Error(ExitStatus status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  ExitStatus status() const { return status_; }

 private:
  ExitStatus status_;
};

/// A device has no memory for what was asked; what() says what was asked for, what is free and what
/// to lower. Work that can be cut in halves is, as with any std::bad_alloc.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

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
