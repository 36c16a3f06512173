#pragma once

#include <string>
#include <string_view>

namespace nmt {

/// Where results go: standard output, or a file that is written aside (`path`.part) and takes its name when whole.
/// Devices and pipes are written directly. Errors (failed), in one line with the name and the reason: no room, closed
/// pipe, ... A closed pipe is such an error only where SIGPIPE is ignored.
class LineWriter {
 public:
  /// Standard output when `path` is "" or "-". Errors (usage): the file cannot be made.
  explicit LineWriter(const std::string& path = "");
  /// Removes what was not committed.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  void write(std::string_view text);
  void flush();
  /// Flushes, gives the file its name. Nothing is written after it.
  void commit();

 private:
  [[noreturn]] void fail_with_errno(const char* what) const;
  std::string name_;   // for messages, and the file's name in the end
  std::string aside_;  // where it is written until then; empty: nothing to rename
  int descriptor_;
  std::string buffer_;
};

}  // namespace nmt
