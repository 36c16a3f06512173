#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>

namespace nmt::app {

/// Progress through a file on a terminal: fraction done, speed, and remaining time. Writes nothing
/// if standard error is not a terminal.
class ProgressLine {
 public:
  /// `path` names the input as on the command line ("" or "-": standard input); only a regular file
  /// has a known end.
  explicit ProgressLine(const std::string& path);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Updates the numbers of lines and bytes read and of lines done.
  void show(std::int64_t lines_read, std::int64_t bytes_read, std::int64_t lines_done);
  double seconds() const;            ///< since construction
  double processor_seconds() const;  ///< CPU time of all threads since construction

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), shown_ = start_;
  std::clock_t processor_start_ = std::clock();
  std::int64_t size_ = 0;
  bool visible_;
};

}  // namespace nmt::app
