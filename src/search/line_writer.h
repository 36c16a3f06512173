#pragma once

#include "core/files/file.h"

#include <string>
#include <string_view>

namespace nmt {

/// Buffered output of results to standard output or a file (AtomicFile). Errors: as AtomicFile.
class LineWriter {
 public:
  /// Standard output when `path` is "" or "-".
  explicit LineWriter(const std::string& path = "") : file_(path) {}

  void write(std::string_view text);
  void flush();
  /// Flushes and publishes the file. No write may follow.
  void commit();

 private:
  AtomicFile file_;
  std::string buffer_;
};

}  // namespace nmt
