#pragma once

#include "core/file.h"

#include <string>
#include <string_view>

namespace nmt {

/// Where results go, behind a buffer: standard output or a file, as AtomicFile has them. Errors: as
/// there.
class LineWriter {
 public:
  /// Standard output when `path` is "" or "-".
  explicit LineWriter(const std::string& path = "") : file_(path) {}

  void write(std::string_view text);
  void flush();
  /// Flushes, gives the file its name. Nothing is written after it.
  void commit();

 private:
  AtomicFile file_;
  std::string buffer_;
};

}  // namespace nmt
