#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace nmt {

/// What kind of error it is; the values are the exit statuses of the programs.
enum class ExitStatus : int {
  ok = 0,
  failed = 1,         ///< the run failed
  usage = 2,          ///< an option, a setting or a file name is wrong
  data = 3,           ///< the contents of a file or of the input are wrong
  memory = 4,         ///< out of memory
  interrupted = 130,  ///< a training saved its state on SIGINT
  terminated = 143,   ///< a training saved its state on SIGTERM
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
