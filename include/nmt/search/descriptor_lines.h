#pragma once

#include <cstdint>
#include <string>

namespace nmt {

/// The lines of a file, a pipe or a terminal. Only LF ends a line; the last one need not have it. Lines are raw bytes.
class DescriptorLines {
 public:
  /// Standard input when `path` is "" or "-". Errors (usage), in one line with the reason: missing, unreadable, a
  /// directory.
  explicit DescriptorLines(const std::string& path = "");
  ~DescriptorLines();
  DescriptorLines(const DescriptorLines&) = delete;
  DescriptorLines& operator=(const DescriptorLines&) = delete;

  /// The next line without its LF; waits for it. False after the last. Errors (failed): the system cannot read.
  bool next(std::string& line);
  /// Whether next() would not wait. Takes what has arrived, never more.
  bool ready();

  const std::string& name() const { return name_; }
  /// A regular file, of size() bytes; else a pipe, a terminal, ... of unknown size.
  bool regular() const { return regular_; }
  std::int64_t size() const { return size_; }
  /// Bytes of the lines given so far.
  std::int64_t position() const { return position_; }

 private:
  bool fill();

  std::string name_;
  int descriptor_;
  bool regular_ = false;
  std::int64_t size_ = 0, position_ = 0;
  std::string buffer_;
  std::size_t begin_ = 0;     // of the next line in buffer_
  std::size_t searched_ = 0;  // no LF in [begin_, searched_)
  bool at_end_ = false;
};

}  // namespace nmt
