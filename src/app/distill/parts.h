#pragma once

#include "text/lines.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nmt::app {

/// Reads a text in parts of the same number of lines; the last one is shorter.
class TextParts {
 public:
  /// Errors: as LineReader::open.
  TextParts(const std::string& path, std::int64_t part_lines)
      : reader_(LineReader::open(path)), part_lines_(part_lines) {}

  /// The lines of the next part; false at the end.
  bool next(std::vector<std::string>& lines);
  /// Of the last part that next() returned, from 0; -1 before the first.
  std::int64_t number() const { return number_; }
  /// Of its first line, from 0.
  std::int64_t first_line() const { return number_ * part_lines_; }
  std::int64_t lines() const { return reader_.lines(); }  ///< read so far
  void warn() const { reader_.notes().warn(reader_.name()); }

 private:
  LineReader reader_;
  std::int64_t part_lines_, number_ = -1;
};

/// Whether the path is a regular file.
bool is_file(const std::string& path);

/// The n-best lists of the lines from number `first_line` on, best first, from a part of the step
/// translate. Error (data): the file does not have such lists of `lines` lines.
std::vector<std::vector<std::string>> read_n_best(const std::string& path, std::int64_t first_line,
                                                  std::size_t lines);

/// A line of a part of the step select.
struct SelectedLine {
  std::string target;
  float backward = 0;  ///< log p of the source given the target, per token; 0 without a model
};
std::string format_selected(const SelectedLine& line);
/// Error (data): the file does not have `lines` such lines.
std::vector<SelectedLine> read_selected(const std::string& path, std::size_t lines);

/// The text of a part of the step align. Error (data): it does not have `lines` lines.
std::string read_links(const std::string& path, std::int64_t lines);

}  // namespace nmt::app
