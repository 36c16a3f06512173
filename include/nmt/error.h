#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace nmt {

/// The kind of an error; the values are the exit statuses of the programs.
enum class ExitStatus : int {
  ok = 0,
  failed = 1,         ///< the run failed
  usage = 2,          ///< invalid option, setting or file name
  data = 3,           ///< invalid contents of a file or of the input
  memory = 4,         ///< out of memory
  interrupted = 130,  ///< training stopped by SIGINT after saving; a call that ShouldStop ended
  terminated = 143,   ///< training stopped by SIGTERM, SIGHUP or SIGUSR1 after saving
};

/// The exception that nmt throws. what() is a single line that names the object, its value and what
/// was expected.
class Error : public std::runtime_error {
 public:
  Error(ExitStatus status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  ExitStatus status() const noexcept { return status_; }

 private:
  ExitStatus status_;
};

/// Out of memory on the device. what() states the bytes requested, the bytes free and which setting
/// to lower. On the host, std::bad_alloc itself is thrown.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

}  // namespace nmt
