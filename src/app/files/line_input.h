#pragma once

#include "search/stream.h"
#include "text/lines.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nmt::app {

/// Error (usage): more than one of the files is standard input ("-"), which can be read once.
void expect_one_standard_input(const std::vector<std::string>& files);

/// The input lines of a job: from a file or pipe, or given as text.
class LineInput : public LineSource {
 public:
  /// `path`: a file; "" and "-" are standard input. If `texts` are given, they are read instead;
  /// each may have several lines, and an empty one is an empty line. Errors (usage): both a file
  /// and texts are given; as LineReader::open.
  LineInput(const std::string& path, const std::vector<std::string>& texts);

  bool next(std::string& line) override;
  bool ready() override { return !reader_ || reader_->available(); }

  /// Whether the input is a regular file, which has a known size and never blocks.
  bool is_file() const { return reader_ && reader_->is_regular_file(); }
  std::int64_t lines() const { return lines_; }  ///< read so far
  std::int64_t bytes() const { return bytes_; }  ///< read so far, each line with its LF
  /// Logs the irregularities of the lines so far, one warning per kind.
  void warn() const;

 private:
  std::optional<LineReader> reader_;
  std::vector<std::string> given_;
  LineNotes notes_;  // of the given texts
  std::int64_t lines_ = 0, bytes_ = 0;
};

}  // namespace nmt::app
