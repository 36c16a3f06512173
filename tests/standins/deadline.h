#pragma once

// A time limit for tests of a host that could wait for ever.

#include <csignal>
#include <cstdio>
#include <cstring>

#include <gtest/gtest.h>
#include <unistd.h>

namespace nmt::test {

/// While it exists, the process may run for `seconds`. It then names the test and exits with 1. At
/// most one exists in a process; a forked process has no limit before it makes its own.
class Deadline {
 public:
  explicit Deadline(unsigned seconds) {
    const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
    std::snprintf(message(), max_message, "%s.%s: process %d still waits after %u s\n",
                  test->test_suite_name(), test->name(), static_cast<int>(::getpid()), seconds);
    std::signal(SIGALRM, [](int) {
      const ssize_t written = ::write(STDERR_FILENO, message(), std::strlen(message()));
      ::_exit(written < 0 ? 2 : 1);
    });
    ::alarm(seconds);
  }
  ~Deadline() { ::alarm(0); }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  static constexpr std::size_t max_message = 256;
  static char* message() {
    static char text[max_message];
    return text;
  }
};

}  // namespace nmt::test
